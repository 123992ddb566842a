"""What the steps of an expression compute, whole columns at a time: numbers, conditions, casts, texts and times.

Imports `windowing.expressions.steps`, `windowing.expressions.types`. Imported by `windowing.expressions.binders`,
`windowing.expressions.pruning`.
"""
