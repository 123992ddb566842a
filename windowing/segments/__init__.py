"""One sequence scanned in segments: summarise each, compose the summaries, scan each from its entry state.

This is a parallel prefix scan over the summaries of the kind of window; `engine.scan` and `engine.presorted` run it.

Imports `windowing.columns`, `windowing.emit`, `windowing.kinds`, `windowing.panes`, `windowing.planning`,
`windowing.scan`, `windowing.sequences`, `windowing.state`. Imported by `windowing.engine`.
"""
