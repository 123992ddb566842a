"""The one writer to stderr, and of texts to stdout: messages and exit codes, progress, row accounts, side files."""
