"""Objects by version on a file system without conditional puts, such as HDFS: the version is compared before the put.

Between the comparison and the put another run may put the object. So this keeps apart only runs that do not commit in
the same instant, and needs ``--unsafe-commit``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from pyarrow import fs

from ..folders.files import is_file, put_file
from ..folders.place import new_token
from .conditional import ConditionFailedError, Object, Version


@dataclass(frozen=True, slots=True)
class UnconditionalStore:
    """The files below a folder, with the methods of `ConditionalStore`; all raise `OSError`.

    ``files``: the file system.
    ``folder``: the path of the folder in it.
    """

    files: fs.FileSystem
    folder: str

    def get(self, name: str) -> Object | None:
        """Return a file, None where there is none; that of a killed `put` where it has deleted the one before."""
        path = f"{self.folder}/{name}"
        found = path if is_file(self.files, path) else self._newest_complete(path)
        if found is None:
            return None
        with self.files.open_input_stream(found) as file:
            content = file.read()
        return Object(content, _version(content))

    def put(self, name: str, content: bytes) -> Version:
        """Put a file, whatever is there; return its version."""
        path = f"{self.folder}/{name}"
        token = new_token()
        attempt, complete = f"{_beside(path)}{token}", f"{_complete_at(path)}{token}"
        put_file(self.files, attempt, content)
        try:
            self.files.move(attempt, path)
        except OSError:  # HDFS does not rename a file to a name that is taken
            self.files.move(attempt, complete)
            self.files.delete_file(path)
            self.files.move(complete, path)
        return _version(content)

    def create(self, name: str, content: bytes) -> Version:
        """Put a file where there is none. Raises `ConditionFailedError` where there is one."""
        if self.get(name) is not None:
            raise ConditionFailedError(name)
        return self.put(name, content)

    def replace(self, name: str, content: bytes, version: Version) -> Version:
        """Replace the version of a file that was read. Raises `ConditionFailedError` where it is another by now."""
        now = self.get(name)
        if now is None or now.version != version:
            raise ConditionFailedError(name)
        return self.put(name, content)

    def list(self, beginning: str = "") -> dict[str, int]:
        """Return the sizes in bytes of all files below a folder, by name."""
        folder = f"{self.folder}/{beginning}".rstrip("/")
        infos = self.files.get_file_info(fs.FileSelector(folder, recursive=True, allow_not_found=True))
        files = (info for info in infos if info.type == fs.FileType.File)
        return {info.path.removeprefix(f"{self.folder}/"): info.size for info in files}

    def delete(self, names: Sequence[str]) -> None:
        """Delete files; one that is not there is no error."""
        for path in (f"{self.folder}/{name}" for name in names):
            if is_file(self.files, path):
                self.files.delete_file(path)

    def prune(self, name: str) -> None:
        """Delete a folder, and those below it, as far as there is no file in them."""
        path = f"{self.folder}/{name}"
        if self.files.get_file_info(path).type != fs.FileType.Directory:
            return
        for info in self.files.get_file_info(fs.FileSelector(path)):
            if info.type == fs.FileType.Directory:
                self.prune(info.path.removeprefix(f"{self.folder}/"))
        if not self.files.get_file_info(fs.FileSelector(path)):
            self.files.delete_dir(path)

    def _newest_complete(self, path: str) -> str | None:
        """Return the path of the last file that a `put` has written whole and not renamed; None where there is none."""
        above = fs.FileSelector(path.rpartition("/")[0], allow_not_found=True)
        infos = [info for info in self.files.get_file_info(above) if info.path.startswith(_complete_at(path))]
        return max(infos, key=lambda info: info.mtime_ns or 0).path if infos else None


def _beside(path: str) -> str:
    """Return the begin of the paths to which `put` writes before it renames."""
    above, _, last = path.rpartition("/")
    return f"{above}/.{last}."


def _complete_at(path: str) -> str:
    """Return the begin of the paths of files that are whole, and for which `put` deletes the one before."""
    return f"{_beside(path)}complete."


def _version(content: bytes) -> Version:
    return Version(hashlib.sha256(content).hexdigest())
