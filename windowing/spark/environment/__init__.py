"""The Python environment of the driver as one archive, from which executors elsewhere run their tasks.

Imports `windowing.errors`, `windowing.spark.class_archive`, `windowing.support`. Imported by `cli`.
"""
