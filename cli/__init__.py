"""The command line. `main` is the entry; `console.messages` is the only writer to stderr."""
