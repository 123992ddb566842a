"""Compiled loops of the aggregates, over arrays alone; `folds`, `functions` and `moments` call them."""
