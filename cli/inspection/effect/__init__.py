"""The effect of a correction before it is published: computed in a scratch folder, and compared with what is there.

Imports `cli.backfill`, `cli.console`, `cli.inspection.comparison`, `cli.job`, `cli.request`, `conf`, `windowing`,
`writers`. Imported by `cli.commands`, `cli.inspection.forecast`.
"""
