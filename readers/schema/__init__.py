"""Types of columns: declared, inferred from text, unified over files; layouts of times."""
