"""Iceberg tables as outputs: files in the data folder of the table, and one snapshot that publishes them.

Imports `windowing`, `writers.commit.contract`, `writers.commit.result_files`, `writers.commit.run_files`,
`writers.commit.run_result`, `writers.commit.version_table`, `writers.folders`, `writers.stores`. Imported by
`writers.commit.tables`.
"""
