"""Input files listed, opened, checked and cut into byte ranges; results of wincli as inputs."""
