"""The job model and its defaults, units of time, and Spark's settings with their reasons.

The entry point is `job_builder.make_job`; `job.Job` is the value that it returns.

Imports `windowing`. Imported by `cli`.
"""
