"""Column types: declared in a schema, inferred from text, or unified over files; formats of timestamps."""
