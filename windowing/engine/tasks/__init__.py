"""The context shipped to every task, sizes of chunks and slices, snapshots of the window state, and rejects."""
