"""A window bound to the columns of an input and checked, with its order and the schema of its result."""
