"""Spark as an `Executor`: Java, the session, its errors and its end. The one package that imports pyspark.

The ways in are `boot.boot`, which starts Spark beside the driver's own work, and `session`.

Imports `windowing.errors`, `windowing.ports`, `windowing.support`. Imported by `cli`, `conf`, `windowing.dataframes`.
"""
