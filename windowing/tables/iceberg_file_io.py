"""The files of a table as pyiceberg opens them: no local FIFO, which a process that opens it waits for without end."""

from __future__ import annotations

from contextlib import suppress

from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO

from ..support.file_systems import check_file


class CheckedFileIO(PyArrowFileIO):  # type: ignore[misc]  # pyiceberg has no types
    """`PyArrowFileIO` that opens no local FIFO, socket or device."""

    def new_input(self, location: str) -> PyArrowFile:
        """Return a file to be read. Raises `OSError` where something else stands there."""
        scheme, _, path = self.parse_location(location, self.properties)
        if scheme == "file":
            with suppress(FileNotFoundError):
                check_file(path)
        return super().new_input(location)
