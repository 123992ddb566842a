"""Inputs of aggregates as arrays, exact sums, and folds over panes; `functions` and `moments` build on them."""
