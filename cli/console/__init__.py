"""Output on stderr for people and machines: messages, progress, counts in words, row accounting; and signals."""
