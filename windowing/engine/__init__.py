"""The distributed run of one window on any `Executor`. Imports no Spark.

The ways in are `run.run_window` and `warmup.warm`.
"""
