"""The types of expressions: each node becomes steps of a program, with the types that DuckDB would give it.

Imports `windowing.errors`, `windowing.expressions.nodes`, `windowing.expressions.operations`,
`windowing.expressions.printing`, `windowing.expressions.steps`, `windowing.expressions.syntax`,
`windowing.expressions.types`, `windowing.support`. Imported by `windowing.expressions.binding`.
"""
