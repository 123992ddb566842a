"""One scan: validate rows, compute panes, leave out what an earlier run emitted, emit, keep what the next run needs."""
