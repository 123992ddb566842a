"""Output for people and machines: messages, progress, counts in words, row accounting, tables, side files; signals.

Imports `windowing`, `writers`. Imported by `cli.backfill`, `cli.commands`, `cli.inspection`, `cli.job`, `cli.launch`,
`cli.main`, `cli.monitoring`.
"""
