"""The map side: chunks are read, sorted, cut at slice bounds, and written as blocks.

`engine.run` calls `map_side` in tasks, and `sampling`, `range_cuts` and `global_pass` on the driver.

Imports `windowing.clock`, `windowing.columns`, `windowing.engine.tasks`, `windowing.enrichment`, `windowing.kinds`,
`windowing.planning`, `windowing.ports`, `windowing.scan`, `windowing.sequences`, `windowing.state`. Imported by `cli`,
`windowing.engine.enrich`, `windowing.engine.presorted`, `windowing.engine.run_strategy`, `windowing.engine.scan`,
`windowing.engine.strategy`, `windowing.engine.window_memory`.
"""
