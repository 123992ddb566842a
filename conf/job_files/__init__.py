"""Job files: YAML to the values of a job with lines of problems, the layers of settings, and the JSON Schema.

Imports `conf.expectations`, `conf.job`, `conf.problems`, `windowing`. Imported by `cli`, `conf.job_builder`.
"""
