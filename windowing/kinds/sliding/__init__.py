"""Sliding windows: rows are evicted and panes triggered, each by count, delta or time (semantics section 3).

Imports `windowing.clock`, `windowing.columns`, `windowing.errors`, `windowing.kinds.context`,
`windowing.kinds.tumbling`, `windowing.language`, `windowing.panes`, `windowing.sequences`, `windowing.state`,
`windowing.support`. Imported by `windowing.emit`, `windowing.kinds.eviction`, `windowing.scan`, `windowing.segments`.
"""
