"""The declarations of options, the job model made from them, units of time, and Spark's settings with their reasons.

`options` declares the options of a job and its stages, and loads nothing heavy. The entry point is
`job_builder.make_job`; `job.Job` is the value that it returns.

Imports `windowing`. Imported by `cli`.
"""
