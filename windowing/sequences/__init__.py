"""Sequences: the rows of each key in their one total order, and the window marks between the rows.

Imports `windowing.columns`, `windowing.support`. Imported by `cli`, `readers`, `windowing.clock`, `windowing.drawings`,
`windowing.emit`, `windowing.engine`, `windowing.enrichment`, `windowing.kinds`, `windowing.scan`, `windowing.segments`,
`windowing.state`, `windowing.streaming`, `writers`.
"""
