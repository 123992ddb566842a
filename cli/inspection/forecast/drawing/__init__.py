"""The windows of a job drawn over the first rows of its input, by the scan in this process.

Imports `cli.console`, `cli.inspection.forecast.stages`, `cli.planning`, `readers`, `windowing`. Imported by
`cli.inspection.forecast.command`.
"""
