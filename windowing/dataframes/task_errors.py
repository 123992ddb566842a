"""Errors of tasks, found again in what Spark raises: on classic Spark, on Spark Connect and on Sail.

A DataFrame is lazy, so an error of its rows is raised where the user asks for them, by Spark, whose exception holds the
text of the one of the task. That text has the words of the `WincliError`, and the error as JSON.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import WincliError
from ..spark.task_errors import decode_error


def find_error(exception: BaseException) -> WincliError | None:
    """Return the error that a task of `windows` ended with, of what Spark raised; None: it was none of wincli's.

    The error has the type and the words that `wincli.aggregate` raises for such rows.
    """
    seen: set[int] = set()
    found: BaseException | None = exception
    while found is not None and id(found) not in seen:
        if isinstance(found, WincliError):
            return found
        if (error := decode_error(str(found))) is not None:
            return error
        seen.add(id(found))
        found = found.__cause__ or found.__context__
    return None


@contextmanager
def unwrap_errors() -> Iterator[None]:
    """Raise the `WincliError` of a task in place of the exception of Spark that holds it.

    For the actions that use the result of `windows`: ``with unwrap_errors(): windows.write.parquet("out")``, or as a
    decorator of a function with such actions. The exception of Spark is the ``__context__`` of the error. Other
    exceptions pass.
    """
    try:
        yield
    except Exception as exception:
        error = find_error(exception)
        if error is None or error is exception:
            raise
        raise error from None
