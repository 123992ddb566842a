"""Tumbling windows: each row is in one window (semantics section 2).

Imports `windowing.aggregates`, `windowing.clock`, `windowing.columns`, `windowing.errors`,
`windowing.kinds.contract`, `windowing.kinds.context`, `windowing.kinds.contract`, `windowing.kinds.delta`,
`windowing.kinds.eviction`, `windowing.kinds.contract`, `windowing.kinds.context`,
`windowing.kinds.segment_summary`, `windowing.kinds.context`, `windowing.language`, `windowing.panes`,
`windowing.sequences`, `windowing.state`, `windowing.support`. Imported by `windowing.engine`,
`windowing.kinds.registry`, `windowing.planning`, `windowing.scan`.
"""
