"""The distributed run of one window over an `Executor` that it is handed: strategy, map, slices, segments."""
