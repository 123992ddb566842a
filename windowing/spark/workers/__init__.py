"""The start of Python workers: forked with everything loaded, without pandas; and the code sent to other machines.

Imports `windowing.support`. Imported by `cli`, `windowing.spark.boot`, `windowing.spark.setup`.
"""
