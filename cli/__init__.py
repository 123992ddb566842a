"""The command line. The entry point is `main`; only `console.messages` writes to stderr."""
