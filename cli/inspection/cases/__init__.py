"""Cases of a job: rows that are given, run through the very plans of the job, and compared with what is expected.

Imports `cli.console`, `cli.inspection.results`, `cli.launch`, `cli.request`, `conf`, `readers`, `windowing`. Imported
by `cli.commands`, `cli.inspection.proposal`.
"""
