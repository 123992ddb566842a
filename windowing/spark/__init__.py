"""Spark as an `Executor`: Java, the session and its end, workers forked from the driver, code for other machines."""
