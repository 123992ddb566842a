"""Helpers that know no windows: formats, kernels, addresses, secrets, checksums, declarations of options."""
