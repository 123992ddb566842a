"""The command line. One file per command; `messages` is the only writer to stderr."""
