"""Windows over batches, each from the window state of those before; a table is one batch."""
