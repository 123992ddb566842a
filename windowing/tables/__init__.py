"""Tables by version as readers and writers both need them: how a path names one, and what one of its versions holds.

Imports `windowing.errors`, `windowing.support`. Imported by `cli`, `readers`, `windowing.ports`, `writers`.
"""
