"""One sequence scanned in segments: summarise each, compose the summaries, scan each from its entry state.

This is a parallel prefix scan; `engine.scan` and `engine.presorted` run it.
"""
