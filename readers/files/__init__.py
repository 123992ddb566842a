"""Input files: finds, opens and checks them, divides text files into byte ranges, recognises results of wincli.

Imports `readers.schema`, `windowing`. Imported by `cli`, `readers.formats`, `readers.open`, `readers.source`.
"""
