"""Paths in job files: ``~`` and environment variables are expanded as in a shell."""

from __future__ import annotations

import os
import re

from ...windowing.errors import ConfigError
from ...windowing.support.suggest import nearest

_VARIABLE = re.compile(r"\$\$|\$\{([^}]*)\}")


def expanded(path: str) -> str:
    """Return a path with ``~`` at its beginning and each ``${NAME}`` expanded; ``$$`` stands for ``$``.

    Raises `ConfigError`, whose text follows the name of a key, where a variable is not set.
    """
    home = re.match(r"~[^/]*", path)
    if home:
        folder = os.path.expanduser(home[0])  # noqa: PTH111 - Path would take ~ for a name where there is no home
        if folder == home[0]:
            raise ConfigError(f"begins with {home[0]}, and there is no such home folder", "write ./~ for that name")
        path = folder.replace("$", "$$") + path[home.end() :]
    return _VARIABLE.sub(_value, path)


def _value(found: re.Match[str]) -> str:
    name = found[1]
    if name is None:
        return "$"
    if name not in os.environ:
        near = nearest(name, os.environ)
        do = f"did you mean ${{{near}}}?" if near else "set it, or write $${ for these characters themselves"
        raise ConfigError(f"names ${{{name}}}, and no such variable is set", do)
    return os.environ[name]
