"""Start a run: boot Spark while the heavy modules load, choose the way to run, fill its pipes.

Imports `cli.arguments`, `cli.backfill`, `cli.console`, `cli.job`, `cli.monitoring`, `cli.planning`, `cli.request`,
`conf`, `readers`, `windowing`, `writers`. Imported by `cli.commands`, `cli.inspection`.
"""
