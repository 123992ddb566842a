"""A job proposed from a look at its input: time, key, order and window, and a first case for it."""
