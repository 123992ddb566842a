"""Command-line arguments: the options, their help page, shell completion, and environment variables."""
