"""Files: found, opened, divided into byte ranges; results of wincli as inputs."""
