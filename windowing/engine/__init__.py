"""The distributed run of one window on any `Executor`. Imports no Spark.

The ways in are `run.run_window` and `warmup.warm`.

Imports `windowing.aggregates`, `windowing.clock`, `windowing.columns`, `windowing.emit`, `windowing.enrichment`,
`windowing.errors`, `windowing.expressions`, `windowing.kinds`, `windowing.local_executor`, `windowing.panes`,
`windowing.planning`, `windowing.ports`, `windowing.projection`, `windowing.scan`, `windowing.segments`,
`windowing.sequences`, `windowing.state`. Imported by `cli`.
"""
