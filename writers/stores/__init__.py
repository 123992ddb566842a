"""Object stores as writers need them: conditional puts, leases with a heartbeat, and the probe of a store's conditions.

Only the process of the driver comes here: the client's threads do not survive a fork, so tasks write by `pyarrow.fs`.

Imports `windowing`, `writers.folders`. Imported by `cli`, `writers.commit`, `writers.state`.
"""
