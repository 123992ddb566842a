"""Backfills: which units of a range run, which are reprocessed, late data, corrections.

The entry point is `range_run.run_backfill`.

Imports `cli.console`, `cli.job`, `conf`, `readers`, `windowing`, `writers`. Imported by `cli.commands`.
"""
