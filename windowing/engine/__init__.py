"""The distributed run of one window, over an `Executor` that it is handed: it imports no Spark.

The ways in are `run.run_window` and `warmup.warm`.
"""
