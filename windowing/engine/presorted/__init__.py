"""Inputs that are sorted already: scanned chunk by chunk, without an exchange, in one pass or in two."""
