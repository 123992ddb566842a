"""Units of a range at the same time (``--jobs``): which may, and how they share one Spark and one bar.

The entry points are `runner.Together`, which takes the place of the loop over units, and `shared.shared_context`.

Imports `cli.backfill.unit_paths`, `cli.console`, `cli.job`, `cli.request`, `conf`, `windowing`. Imported by
`cli.backfill.range_run`, `cli.inspection`, `cli.launch`.
"""
