"""One module for each command; each is imported when its command is called.

Imports `cli.arguments`, `cli.backfill`, `cli.console`, `cli.job`, `cli.request`, `conf`, `readers`, `windowing`,
`writers`. Imported by `cli.main`.
"""
