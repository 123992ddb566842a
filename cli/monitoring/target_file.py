"""Whether a local file that metrics or events go to can be written: checked before a run."""

from __future__ import annotations

import os
from pathlib import Path

from ...windowing.errors import ConfigError, printable
from ...writers.folders.os_errors import reason


def check_file(option: str, name: str, example: str, is_replaced: bool) -> None:
    """Raise `ConfigError` where a file cannot be written.

    ``option``: the option that names it. ``example``: a name for a file, for the message. ``is_replaced``: whether
    another file takes its place; else text is added to it.
    """
    path, given = Path(name), f"{option} {printable(name)}"
    try:
        if path.is_dir():
            raise ConfigError(f"{given} is a folder", f"name a file in it, such as {printable(str(path / example))}")
        if not path.parent.is_dir():
            raise ConfigError(f"{given}: there is no folder {printable(str(path.parent))}", "make it, or name another")
        if is_replaced and path.exists() and not path.is_file():  # such as /dev/null, which root could replace
            raise ConfigError(f"{given} is no file", "name another")
        has_file = not is_replaced and path.exists()
        is_writable = os.access(path, os.W_OK) if has_file else os.access(path.parent, os.W_OK | os.X_OK)
    except OSError as error:
        raise ConfigError(f"{given} cannot be written: {reason(error)}", "name another") from None
    if not is_writable:
        what = given if has_file else f"{given}: the folder {printable(str(path.parent))}"
        raise ConfigError(f"{what} may not be written", "name another, or change the permissions")
