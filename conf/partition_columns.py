"""The entries of ``--partition-by``: columns of a result, and names of expressions over them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..windowing.errors import ConfigError
from ..windowing.support.suggest import short

if TYPE_CHECKING:
    from ..windowing.expressions.syntax import Expression

_ENTRY = re.compile(r"""(?:'(?:[^']|'')*'|"(?:[^"]|"")*"|[^'"])""")
_NAMED = re.compile(r'\s*(?:([^\W\d]\w*)|"((?:[^"]|"")+)")\s*=(?!=)(.*)', re.DOTALL)
_QUOTED = re.compile(r'"((?:[^"]|"")+)"')


@dataclass(frozen=True, slots=True)
class PartitionColumn:
    """One column whose values name folders.

    ``name``: its name.
    ``expression``: its value over the columns of the result; None for the column of that name.
    """

    name: str
    expression: Expression | None


def entries(value: Any) -> tuple[str, ...]:
    """Split ``a,day=cast(ts as date)``, or each text of a list, at the commas that no quote or bracket encloses.

    Raises `ConfigError` or `SpecError` where an entry is no column and no named expression.
    """
    texts = [value] if isinstance(value, str) else list(value)
    found = tuple(entry for text in texts for entry in _split(text) if entry)
    for entry in found:
        partition_column(entry)
    return found


def partition_column(entry: str) -> PartitionColumn:
    """Parse one entry: ``COL``, ``"odd name"`` or ``NAME=EXPR``. Raises as `entries` does."""
    if named := _NAMED.fullmatch(entry):
        from ..windowing.expressions.syntax import parse_expression  # noqa: PLC0415 - few jobs have an expression

        name = named[1] or named[2].replace('""', '"')
        return PartitionColumn(name, parse_expression(named[3].strip()))
    quoted = _QUOTED.fullmatch(entry)
    return PartitionColumn(quoted[1].replace('""', '"') if quoted else entry, None)


def _split(text: str) -> Iterator[str]:
    depth, entry, at = 0, "", 0
    while at < len(text):
        found = _ENTRY.match(text, at)
        if found is None:
            raise ConfigError(f"{short(text)!r} has a quote that is not closed", 'write "a,b" for a column a,b')
        at, token = found.end(), found[0]
        depth += (token in "([") - (token in ")]")
        if token == "," and depth == 0:
            yield entry.strip()
            entry = ""
        else:
            entry += token
    yield entry.strip()
