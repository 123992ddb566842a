"""Panes to result tables: rows of aggregates or of the input, groups, operators, stream columns.

The way in is `result_tables`; `scan.scan` calls it.

Imports `windowing.aggregates`, `windowing.columns`, `windowing.errors`, `windowing.kinds`, `windowing.language`,
`windowing.operator`, `windowing.panes`, `windowing.planning`, `windowing.projection`, `windowing.sequences`,
`windowing.state`, `windowing.support`. Imported by `cli`, `windowing.engine`, `windowing.scan`, `windowing.segments`.
"""
