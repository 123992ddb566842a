"""The map side: chunks are read, sorted, cut at slice bounds, and written as blocks.

`engine.run` calls `map_side` in tasks, and `sampling`, `range_cuts` and `global_pass` on the driver.
"""
