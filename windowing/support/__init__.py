"""Helpers without any knowledge of windows: kernel compilation, suggestions, redaction, checksums, the module path."""
