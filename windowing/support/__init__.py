"""Helpers that know nothing of windows: kernel compilation, suggestions, redaction, checksums, the module path."""
