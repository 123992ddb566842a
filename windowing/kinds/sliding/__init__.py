"""Sliding windows: rows are evicted and panes triggered, each by count, delta or time (semantics section 3).

Imports `windowing.clock`, `windowing.columns`, `windowing.errors`,
`windowing.kinds.conditions`, `windowing.kinds.context`, `windowing.kinds.contract`, `windowing.kinds.delta`,
`windowing.kinds.eviction`, `windowing.kinds.measured`, `windowing.kinds.overlapping`,
`windowing.kinds.row_counts`, `windowing.kinds.row_steps`, `windowing.kinds.segment_summary`, `windowing.kinds.signals`,
`windowing.language`, `windowing.panes`, `windowing.sequences`, `windowing.state`. Imported by
`windowing.kinds.registry`.
"""
