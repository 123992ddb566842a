"""Exact windows over ordered rows: what users import, the errors, and the contracts with the rest of the program."""
