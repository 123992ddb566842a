"""The command line: `main` declares the commands, `commands` and `arguments` their options, `launch` starts a run."""
