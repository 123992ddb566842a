"""One run of a job: its stages, manifests, commit, summary.

The entry point is `pipeline.run_job`, in one of two modes (`run_mode.RunMode`): `plain_run.PlainRun` without a state,
`incremental_run.IncrementalRun` as a unit on one. `context.RunContext` holds the values that all steps share.

Imports `cli.console`, `cli.planning`, `cli.request`, `conf`, `readers`, `windowing`, `writers`. Imported by
`cli.backfill`, `cli.commands`, `cli.inspection`, `cli.launch`, `cli.monitoring`.
"""
