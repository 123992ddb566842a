"""Turn an `OSError` of a failed write into a one-line message for the user, with a remedy."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from ...windowing.errors import OutputError
from ...windowing.support.addresses.store_errors import store_trouble

_REMEDIES = {
    errno.ENOSPC: "free some space there, or write to another disk",
    errno.EDQUOT: "free some of the quota, or write to another disk",
    errno.EFBIG: "raise the limit on file sizes (ulimit -f), or write to another disk",
    errno.EACCES: "get the right to write there, or write to another folder",
    errno.EPERM: "get the right to write there, or write to another folder",
    errno.EROFS: "write to a disk that is not mounted read-only",
    errno.ENOTDIR: "write to another path, or move that file away",
    errno.ENAMETOOLONG: "choose a shorter name for the output",
    errno.EXDEV: "write to a folder that can be renamed (not a mount point or an image layer)",
}
_WORDS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file is too large for this system",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.EROFS: "the disk is read-only",
    errno.ENOENT: "the folder is not there any more",
    errno.ENOTDIR: "a part of the path is a file, not a folder",
    errno.ENAMETOOLONG: "the name is too long",
    errno.EIO: "the disk reported an error",
}


@contextmanager
def output_errors(shown: str) -> Iterator[None]:
    """Turn an `OSError` of the body into an `OutputError` that names ``shown``, the path as the user knows it.

    Use it only before the swap, because the message says that nothing was written.
    """
    try:
        yield
    except OSError as error:
        what = f"cannot write {shown}: {reason(error)}; nothing was written"
        raise OutputError(what, remedy(error)) from error


def reason(error: OSError) -> str:
    """Return one line that says in plain words why a write failed."""
    if error.errno in _WORDS:
        return _WORDS[error.errno]
    text = error.strerror or str(error) or type(error).__name__
    trouble = None if error.errno else store_trouble(text)
    return trouble.words if trouble else text.splitlines()[0].split(". Detail:")[0]


def remedy(error: OSError) -> str | None:
    """Return what the user can do about a write that has failed; None where that is not known."""
    trouble = None if error.errno else store_trouble(str(error))
    return trouble.do if trouble else _REMEDIES.get(error.errno or 0)
