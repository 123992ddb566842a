"""Batched windows: a pane for each change of the visible rows (semantics section 6).

Imports `windowing.clock`, `windowing.columns`, `windowing.kinds.context`, `windowing.language`, `windowing.panes`,
`windowing.sequences`, `windowing.support`. Imported by `windowing.scan`.
"""
