"""Inputs that are sorted already: scanned chunk by chunk, without an exchange, in one pass or in two.

Imports `windowing.columns`, `windowing.engine.exchange`, `windowing.engine.scan`, `windowing.engine.tasks`,
`windowing.errors`, `windowing.kinds`, `windowing.planning`, `windowing.ports`, `windowing.segments`,
`windowing.sequences`. Imported by `windowing.engine.run_strategy`, `windowing.engine.strategy`.
"""
