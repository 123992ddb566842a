"""Folders on disk or in an object store: names, files, locks, atomic replacement, and messages for system errors.

The other packages of `writers` import any of these modules; `folders` imports none of those packages.

Imports `windowing`. Imported by `cli`, `writers.commit`, `writers.output`, `writers.state`, `writers.stores`.
"""
