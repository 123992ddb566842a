"""Projection and filter of an input: columns that expressions compute, and the rows for which a condition is true.

`projection.Projection` says which columns and rows there are; `source.ProjectionSource` is a source that has them.

Imports `windowing.columns`, `windowing.errors`, `windowing.expressions`, `windowing.language`, `windowing.ports`.
Imported by `cli`, `readers`, `windowing.dataframes`, `windowing.emit`, `windowing.engine`, `windowing.planning`,
`windowing.scan`, `windowing.streaming`.
"""
