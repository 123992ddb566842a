"""Event-time windows: intervals that a watermark completes (semantics section 5).

Imports `windowing.clock`, `windowing.columns`, `windowing.errors`, `windowing.kinds.context`,
`windowing.kinds.contract`, `windowing.kinds.eviction`, `windowing.kinds.overlapping`, `windowing.kinds.row_steps`,
`windowing.kinds.signals`, `windowing.language`, `windowing.panes`, `windowing.sequences`, `windowing.support`. Imported
by `windowing.kinds.registry`.
"""
