"""Which windows two results do not have in common, and whether results and states are what was written.

Imports `cli.backfill`, `cli.console`, `cli.inspection.results`, `readers`, `windowing`, `writers`. Imported by
`cli.commands`, `cli.inspection.effect`.
"""
