"""The job model and its defaults, units of time, and Spark's settings with their reasons.

The way in is `job_builder`; `job.Job` is the value.
"""
