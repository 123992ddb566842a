"""Examples to read, to run and to start from: jobs (``docs/jobs.md``), operators (``docs/operators.md``), a stream
(``docs/dataframes.md``).

Imports `windowing`. Imported by nothing.
"""
