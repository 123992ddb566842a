"""Inputs of aggregates as arrays, exact sums, and folds over panes; `functions` and `moments` build on them.

Imports `windowing.aggregates.kernels`, `windowing.columns`, `windowing.errors`, `windowing.panes`, `windowing.support`.
Imported by `windowing.aggregates.bind`, `windowing.aggregates.compute`, `windowing.aggregates.functions`,
`windowing.aggregates.moments`, `windowing.aggregates.table`, `windowing.aggregates.two_phase`,
`windowing.aggregates.user_calls`, `windowing.arguments`, `windowing.dataframes`, `windowing.kinds`.
"""
