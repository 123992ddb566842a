"""What a run needs before it computes: outputs opened, input opened, stages planned, and their outputs chosen.

Imports `cli.request`, `conf`, `readers`, `windowing`, `writers`. Imported by `cli.backfill`, `cli.inspection`,
`cli.job`, `cli.launch`, `cli.monitoring`.
"""
