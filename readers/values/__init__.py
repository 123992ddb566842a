"""Types of columns, and texts to values of them: what bytes of text say, where records end, timestamps."""
