"""How a table goes from one complete result to the next: prepare, publish, recover, for each kind of table.

`contract` says what a kind has to do, `tables` lists the kinds, and each kind is one module.

Imports `windowing`, `writers.folders`, `writers.stores`. Imported by `cli`, `writers.output`, `writers.state`.
"""
