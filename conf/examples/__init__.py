"""Example jobs and operators to read, to run and to start from (``docs/jobs.md``, ``docs/operators.md``).

Imports `windowing`. Imported by nothing.
"""
