"""What a job says of itself: its choices before it runs, whether expectations hold, its manifests, and its summary.

Imports `cli.console`, `cli.job.context`, `cli.job.staged_job`, `cli.planning`, `cli.request`, `conf`, `readers`,
`windowing`, `writers`. Imported by `cli.inspection`, `cli.job.incremental_run`, `cli.job.pipeline`, `cli.job.run_mode`,
`cli.launch`.
"""
