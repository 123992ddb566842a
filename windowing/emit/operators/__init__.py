"""Operators of the user: when rows enter and leave their windows, the calls in order, and the rows that they return.

The way in is `calls.operator_batches`.

Imports `windowing.columns`, `windowing.emit.stream_columns`, `windowing.errors`, `windowing.kinds`,
`windowing.operator`, `windowing.panes`, `windowing.planning`, `windowing.sequences`, `windowing.state`,
`windowing.support`. Imported by `windowing.emit.result_tables`, `windowing.scan`.
"""
