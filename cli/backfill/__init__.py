"""Backfills: which units of a range run, which are reprocessed, late data, corrections.

The entry point is `range_run.run_backfill`, in one of two modes: `plain_backfill.PlainBackfill` without a state,
`incremental_backfill.IncrementalBackfill` on one.

Imports `cli.console`, `cli.job`, `cli.planning`, `cli.request`, `conf`, `readers`, `windowing`, `writers`. Imported by
`cli.inspection`, `cli.launch`.
"""
