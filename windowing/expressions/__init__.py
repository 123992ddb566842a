"""A subset of SQL over columns: parsed, bound to a schema, and computed over whole Arrow columns."""
