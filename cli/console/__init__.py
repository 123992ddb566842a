"""The one writer to stderr, and of texts to stdout: messages and exit codes, progress, amounts in words, side files."""
