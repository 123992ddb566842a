"""Sums, means, deviations and weighted means that are the float nearest to the exact value (semantics section 9).

`functions.arithmetic` and `two_phase` import from here.

Imports `windowing.aggregates.folds`, `windowing.aggregates.kernels`, `windowing.columns`, `windowing.panes`,
`windowing.support`. Imported by `windowing.aggregates.functions`, `windowing.aggregates.two_phase`,
`windowing.kinds`.
"""
