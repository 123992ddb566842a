"""A window in English: one sentence for each of its clauses and options, from the values that are computed with.

Imports `windowing.language.calls`, `windowing.language.canonical`, `windowing.language.clock_policies`,
`windowing.language.conditions`, `windowing.language.options`, `windowing.language.row_policies`,
`windowing.language.spec`. Imported by `cli`.
"""
