"""Tumbling windows: each row is in one window (semantics section 2).

Imports `windowing.aggregates`, `windowing.clock`, `windowing.columns`, `windowing.errors`,
`windowing.kinds.conditions`, `windowing.kinds.context`, `windowing.kinds.contract`, `windowing.kinds.delta`,
`windowing.kinds.eviction`, `windowing.kinds.measured`, `windowing.kinds.row_steps`,
`windowing.kinds.segment_summary`, `windowing.kinds.signals`, `windowing.language`, `windowing.panes`,
`windowing.sequences`, `windowing.state`, `windowing.support`. Imported by `windowing.engine`,
`windowing.kinds.registry`, `windowing.planning`, `windowing.scan`.
"""
