"""Texts and numbers to typed values, column by column, with the rows that do not fit."""
