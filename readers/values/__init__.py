"""Conversion of a column of texts or numbers to its type, with a mask of the rows whose value does not fit."""
