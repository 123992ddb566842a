"""Rows get columns of another log or table: a plain lookup by key, or the newest row at or before (as-of).

Imports `windowing.columns`, `windowing.errors`, `windowing.language`, `windowing.ports`, `windowing.sequences`,
`windowing.support`. Imported by `cli`, `windowing.engine`.
"""
