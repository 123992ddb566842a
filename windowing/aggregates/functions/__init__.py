"""One function for each aggregate: inputs to one value for each pane. `aggregates.table` lists them.

Imports `windowing.aggregates.folds`, `windowing.aggregates.kernels`, `windowing.aggregates.moments`,
`windowing.columns`, `windowing.errors`, `windowing.panes`, `windowing.support`. Imported by
`windowing.aggregates.table`, `windowing.aggregates.two_phase`.
"""
