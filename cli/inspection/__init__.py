"""Look at jobs, results and states before and after a run.

Imports `cli.backfill`, `cli.console`, `conf`, `readers`, `windowing`, `writers`. Imported by `cli.commands`.
"""
