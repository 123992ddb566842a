"""Event-time windows: intervals that a watermark completes (semantics section 5).

Imports `windowing.clock`, `windowing.columns`, `windowing.errors`, `windowing.language`, `windowing.panes`,
`windowing.sequences`, `windowing.support`. Imported by `windowing.scan`.
"""
