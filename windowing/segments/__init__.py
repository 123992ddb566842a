"""One sequence scanned in segments: summarise each, compose the summaries, scan each from its entry state.

This is a parallel prefix scan; `engine.scan` and `engine.presorted` run it.

Imports `windowing.clock`, `windowing.columns`, `windowing.kinds`, `windowing.language`, `windowing.panes`,
`windowing.planning`, `windowing.scan`, `windowing.sequences`, `windowing.state`, `windowing.support`. Imported by
`windowing.engine`.
"""
