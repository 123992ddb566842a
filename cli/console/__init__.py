"""What people and machines are told on stderr: messages, progress, counts in words, row accounting; and signals."""
