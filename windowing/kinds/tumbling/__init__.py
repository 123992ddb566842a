"""Tumbling windows: each row is in one window (semantics section 2).

Imports `windowing.clock`, `windowing.columns`, `windowing.errors`, `windowing.kinds.context`, `windowing.language`,
`windowing.panes`, `windowing.sequences`, `windowing.support`. Imported by `windowing.kinds.eviction`,
`windowing.kinds.sliding`, `windowing.scan`, `windowing.segments`.
"""
