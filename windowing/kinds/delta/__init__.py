"""``delta`` over the rows of a key: where windows start, which rows are evicted, and what a segment makes of a start.

Imports `windowing.columns`, `windowing.sequences`, `windowing.support`. Imported by `windowing.engine`,
`windowing.kinds.contract`, `windowing.kinds.segment_summary`, `windowing.kinds.sliding`, `windowing.kinds.tumbling`,
`windowing.segments`.
"""
