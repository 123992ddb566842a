"""States kept in order: their units listed, units taken out again, what is no longer needed deleted.

Imports `cli.backfill`, `cli.console`, `cli.job`, `conf`, `windowing`, `writers`. Imported by `cli.commands`.
"""
