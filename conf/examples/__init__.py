"""Operators to read, to run and to begin with (``docs/operators.md``)."""
