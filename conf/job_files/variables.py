"""Variables in the values of job files: ``${NAME}`` is what ``--var`` says of it, else an environment variable."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ...windowing.errors import ConfigError
from ...windowing.support.addresses.redaction import MASK, is_secret
from ...windowing.support.suggest import nearest, short

_IN_PATH = re.compile(r"\$\$|\$\{([^}]*)\}")
_IN_TEXT = re.compile(r"\$\$(?=\{)|\$\{([^}]*)\}")  # outside of paths a lone ``$$`` has always stood for itself
_DOOR_KEY = re.compile(r"(access|account|api|encryption|master|private|secret|ssh|storage)_?key", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

PATTERN = r"\$\{[^}]*\}"
"""What a text with a variable has in it, as a regular expression."""


@dataclass(frozen=True, slots=True)
class Variables:
    """The variables that the values of a job file may name.

    ``given``: those of ``--var``, which win over the environment.
    ``used``: the names that the file has.
    """

    given: Mapping[str, str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def expand(self, text: str, *, may_be_secret: bool = True) -> str:
        """Return a text with each ``${NAME}`` expanded; ``$${`` stands for ``${``.

        ``may_be_secret``: whether results that record the text leave out what is secret in it. Raises `ConfigError`,
        whose text follows the name of a key, for a name without a value, and for a secret where it would be recorded.
        """
        return _IN_TEXT.sub(lambda found: self._value(found[1], may_be_secret), text)

    def expand_path(self, path: str) -> str:
        """Return a path with ``~`` at its beginning and each ``${NAME}`` expanded; ``$$`` stands for ``$``.

        Raises as `expand` does, and where there is no such home folder.
        """
        home = re.match(r"~[^/]*", path)
        if home:
            folder = os.path.expanduser(home[0])  # noqa: PTH111 - Path would take ~ for a name where there is no home
            if folder == home[0]:
                raise ConfigError(f"begins with {home[0]}, and there is no such home folder", "write ./~ for that name")
            path = folder.replace("$", "$$") + path[home.end() :]
        return _IN_PATH.sub(lambda found: self._value(found[1], may_be_secret=True), path)

    def _value(self, name: str | None, may_be_secret: bool) -> str:
        if name is None:
            return "$"
        self.used.add(name)
        value = self.given.get(name, os.environ.get(name))
        if value is None:
            raise ConfigError(f"names ${{{name}}}, and no such variable is set", self._advice(name))
        if not may_be_secret and _is_secret(name):
            what = f"names ${{{name}}}, whose name says that it is secret, and results record this value as it is"
            raise ConfigError(what, "use secrets in paths and settings of Spark, or call it by another name")
        return value

    def _advice(self, name: str) -> str:
        if near := nearest(name, [*self.given, *os.environ]):
            return f"did you mean ${{{near}}}?"
        if not _NAME.fullmatch(name):
            return "a name has letters, digits and _; write $${ for these characters themselves"
        return f"set it, say --var {name}=VALUE, or write $${{ for these characters themselves"


def _is_secret(name: str) -> bool:
    """Whether the name of a variable says that its value is secret. Of keys only those of doors do."""
    return _DOOR_KEY.search(name) is not None or is_secret(re.sub("key", "", name, flags=re.IGNORECASE))


def given_variables(texts: Iterable[str]) -> dict[str, str]:
    """Return the variables of ``--var``; of one that is given twice the last. Raises `ConfigError` for a wrong text."""
    found = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not _NAME.fullmatch(name):
            word = re.split(r"[^\w.-]", text, maxsplit=1)[0]
            seen = f"{name}={MASK}" if sign else word if word == text else word + MASK
            raise ConfigError(f"--var {short(repr(seen))} is not NAME=VALUE", "write for example --var day=2026-11-01")
        found[name] = value
    return found
