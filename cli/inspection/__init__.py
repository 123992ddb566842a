"""Look at jobs, results and states before and after a run.

Imports `cli.arguments`, `cli.backfill`, `cli.console`, `cli.job`, `cli.launch`, `cli.monitoring`, `cli.planning`,
`cli.request`, `conf`, `readers`, `windowing`, `writers`. Imported by `cli.commands`.
"""
