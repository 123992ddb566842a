"""Compiled loops of the aggregates, over arrays alone; `folds`, `functions` and `moments` call them.

Imports `windowing.columns`, `windowing.panes`, `windowing.support`. Imported by `windowing.aggregates.folds`,
`windowing.aggregates.functions`, `windowing.aggregates.moments`, `windowing.kinds`.
"""
