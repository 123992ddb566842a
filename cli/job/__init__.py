"""One run of a job: request, plan, stages, commit, summary.

The entry point is `pipeline.run_job`; `context.RunContext` holds the values that all steps share.

Imports `cli.console`, `conf`, `readers`, `windowing`, `writers`. Imported by `cli.backfill`, `cli.commands`.
"""
