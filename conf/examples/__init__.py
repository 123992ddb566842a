"""Example jobs, operators and a stream, to read, to run and to start from."""
