"""Values of options: how texts are parsed and checked, and which types a job file may write.

A job keeps texts as the user wrote them. An invalid value is a `WincliError` whose text follows the name of the option:
``--lag`` + ``'soon' is no duration``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from ..windowing.errors import ConfigError, SpecError, WincliError, short
from ..windowing.expressions.syntax import Expression as AnyExpression
from ..windowing.expressions.syntax import parse_expression
from ..windowing.expressions.tokens import TOKENS, scan
from ..windowing.language.distinct import parse_distinct
from ..windowing.language.enrichment import parse_enrichment, parse_windows
from ..windowing.language.joins import parse_join
from ..windowing.language.parser import (
    duration_seconds,
    origin_seconds,
    parse_aggregate,
    parse_let,
    parse_window,
)
from ..windowing.support.option import Kind, Option

# The entries of ``--partition-by``: columns of a result, and names of expressions over them.


_NAMED = re.compile(r'\s*(?:([^\W\d]\w*)|"((?:[^"]|"")+)")\s*=(?!=)(.*)', re.DOTALL)
_QUOTED_NAME = re.compile(r'"((?:[^"]|"")+)"')


def entries(value: Any) -> tuple[str, ...]:
    """Split ``a,day=cast(ts as date)``, or each text of a list, at the commas that no quote or bracket encloses.

    Raises `ConfigError` or `SpecError` where an entry is no column and no named expression.
    """
    texts = [value] if isinstance(value, str) else list(value)
    found = tuple(entry for text in texts for entry in _split(text) if entry)
    for entry in found:
        partition_column(entry)
    return found


def partition_column(entry: str) -> tuple[str, AnyExpression | None]:
    """Parse one entry: ``COL``, ``"odd name"`` or ``NAME=EXPR``; return name and expression. Raises as `entries` does.

    The expression is None for the column of that name.
    """
    if named := _NAMED.fullmatch(entry):
        return named[1] or named[2].replace('""', '"'), parse_expression(named[3].strip())
    quoted = _QUOTED_NAME.fullmatch(entry)
    return quoted[1].replace('""', '"') if quoted else entry, None


def _split(text: str) -> Iterator[str]:
    depth, start = 0, 0
    try:
        for token in scan(TOKENS, text):
            depth += (token.text in {"(", "["}) - (token.text in {")", "]"})
            if token.text == "," and depth == 0:
                yield text[start : token.span.start].strip()
                start = token.span.stop
    except SpecError as error:
        what = f"{short(text)!r} has a quote that is not closed"
        raise ConfigError(what, 'write "a,b" for a column a,b') from error
    yield text[start:].strip()


# Expectations: what a job demands of each unit before it is committed (semantics section 14).
#
# An expectation is a text: ``EXPR`` over the numbers of a unit, or ``all(EXPR)`` or ``any(EXPR)`` over the rows of
# the result. ``warn: `` before it says that it only warns; a job file may write that as ``{expr: .., on_fail:
# warn}``.


Scope: TypeAlias = Literal["numbers", "all", "any"]
OnFail: TypeAlias = Literal["fail", "warn"]

_WARN = re.compile(r"\s*warn\s*:")
_OVER_ROWS = re.compile(r"\s*(all|any)\s*\(", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a job demands.

    ``scope``: whether it is about the numbers of a unit, about all rows of the result, or about any of them.
    ``expression``: what must be true.
    ``on_fail``: whether the unit fails, or a note is enough.
    """

    scope: Scope
    expression: AnyExpression
    on_fail: OnFail = "fail"

    def __str__(self) -> str:
        text = str(self.expression)
        return text if self.scope == "numbers" else f"{self.scope}({text})"


def parse_expectation(text: str) -> Expectation:
    """Parse an expectation. Raises `SpecError` with the span at fault, `ConfigError` for an empty one."""
    begin = found.end() if (found := _WARN.match(text)) else 0
    on_fail: OnFail = "warn" if begin else "fail"
    if not text[begin:].strip():
        raise ConfigError(f"{short(text)!r} has no expression", "say it as 'rows_rejected = 0'")
    over = _OVER_ROWS.match(text, begin)
    if over is None or _closing(text, over.end()) != len(text.rstrip()) - 1:
        return Expectation("numbers", _parsed(text, begin, len(text)), on_fail)
    scope: Scope = "all" if over[1].lower() == "all" else "any"
    return Expectation(scope, _parsed(text, over.end(), len(text.rstrip()) - 1), on_fail)


def expectation_text(expression: str, on_fail: str) -> str:
    """Return the text of an expectation that a job file writes as a mapping. Raises `ConfigError` for other words."""
    if on_fail not in ("fail", "warn"):
        raise ConfigError(f"on_fail cannot be {short(on_fail)!r}", "say fail or warn")
    return f"warn: {expression}" if on_fail == "warn" else expression


def _parsed(text: str, begin: int, stop: int) -> AnyExpression:
    """Parse a part of a text, with blanks in place of the rest, so that spans are places in the whole text."""
    part = " " * begin + text[begin:stop]
    if not part.strip():
        raise ConfigError(f"{short(text)!r} has no expression", "say it as all(latency < 30)")
    try:
        return parse_expression(part)
    except SpecError as error:
        raise SpecError(error.what, text, error.span, error.do) from None


def _closing(text: str, begin: int) -> int:
    """Return the place of the parenthesis that closes one before ``begin``, outside quotes; -1 where none does."""
    depth = 1
    with suppress(SpecError):  # of a quote that is never closed, which the parser will tell
        for token in scan(TOKENS, " " * begin + text[begin:]):
            depth += (token.text == "(") - (token.text == ")")
            if depth == 0:
                return token.span.start
    return -1


_SIZES = {"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "k": 10**3, "m": 10**6, "g": 10**9}
_SIZES |= {"kb": 10**3, "mb": 10**6, "gb": 10**9}
_ENTRY = re.compile(r'\s*("(?:[^"]|"")*")?([^,]*)(?:,|\Z)')
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def names(value: Any) -> Any:
    """Split ``a,b`` or ``["a", "b,c"]`` into column names; a name in double quotes may hold commas, and ``""`` for one.

    Raises `ConfigError` where a quote is not closed.
    """
    texts = [value] if isinstance(value, str) else list(value)
    found = []
    for text in texts:
        # Not by `scan`: behind the first character of a name a quote is a character, as ' is everywhere.
        for quoted, rest in _ENTRY.findall(text):
            if not quoted and rest.startswith('"'):
                raise ConfigError(f"{short(text)!r} has a quote that is not closed", 'write "a,b" for a column a,b')
            found.append((quoted[1:-1].replace('""', '"') + rest).strip())
    return tuple(filter(None, found))


def size(value: Any) -> int:
    """Parse ``64MiB``, ``1.5GiB`` or a number of bytes. Raises `ConfigError`."""
    found = re.fullmatch(r"\s*(\d{1,15}(?:\.\d{1,9})?)\s*([a-z]*)\s*", str(value).lower())
    if not found or found[2] not in _SIZES or not (got := int(float(found[1]) * _SIZES[found[2]])):
        raise ConfigError(f"{short(str(value))!r} is not a size", "write it as 64MiB, 1GiB or a number of bytes")
    return got


def _character(text: Any) -> Any:
    r"""Return a character; ``\t``, as shells hand it on, is a tab. Raises `ConfigError` for a longer text."""
    if text == "\\t":
        return "\t"
    if isinstance(text, str) and len(text) != 1:
        raise ConfigError(f"{short(repr(text))} is not one character", "write one, such as ';', or '\\t' for a tab")
    return text


def _name(text: str) -> None:
    if not _NAME.fullmatch(text):
        do = "use letters, digits, '-', '_' and '.', and begin with a letter or digit"
        raise ConfigError(f"{short(text)!r} is no name of a stage", do)


def _texts(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def checked_by(read: Callable[[Any], object]) -> Callable[[Any], Any]:
    """Return a validator that leaves a value unchanged if ``read`` accepts it; the error of ``read`` is kept."""

    def check(value: Any) -> Any:
        converted_by(read)(value)
        return value

    return check


def converted_by(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a validator that converts a value with ``read``; the error of ``read`` is kept."""

    def convert(value: Any) -> Any:
        try:
            return read(value)
        except WincliError as error:
            raise PydanticCustomError("unfit", "it does not read", {"error": error}) from None

    return convert


def _json_type(*types: str) -> WithJsonSchema:
    inner = {"array": {"items": {"type": "string"}}, "object": {"additionalProperties": {"type": "string"}}}
    more = {word: value for name in types for word, value in inner.get(name, {}).items()}
    return WithJsonSchema({"type": types[0] if len(types) == 1 else list(types), **more})


Texts = Annotated[tuple[str, ...], BeforeValidator(_texts), _json_type("string", "array"), Field(min_length=1)]


def _text(read: Callable[[Any], object], *json: WithJsonSchema) -> Any:
    return Annotated[(str, AfterValidator(checked_by(read)), *json)]


def _parsed_texts(read: Callable[[Any], object]) -> Any:
    """Return the type of texts that each are read; a job file may write them as a mapping, too."""
    each: Any = tuple[_text(read), ...]  # type: ignore[misc]  # the type is made here
    return Annotated[each, BeforeValidator(_texts), _json_type("string", "array", "object")]


_EXPECTATION = {
    "type": ["string", "object"],
    "properties": {"expr": {"type": "string"}, "on_fail": {"enum": ["fail", "warn"]}},
    "required": ["expr"],
    "additionalProperties": False,
}
_MODEL_TYPES: Mapping[Kind, Any] = {
    "calls": _parsed_texts(parse_aggregate),
    "character": Annotated[str, BeforeValidator(converted_by(_character)), Field(min_length=1, max_length=1)],
    "distinct": _text(parse_distinct),
    "duration": _text(duration_seconds, _json_type("string", "number")),
    "enrichments": _parsed_texts(parse_enrichment),
    "expectations": Annotated[
        tuple[_text(parse_expectation), ...],  # type: ignore[misc]
        BeforeValidator(_texts),
        WithJsonSchema({"type": ["string", "array"], "items": _EXPECTATION}),
    ],
    "expression": _text(parse_expression),
    "join": _text(parse_join),
    "lets": _parsed_texts(parse_let),
    "names": Annotated[tuple[str, ...], BeforeValidator(converted_by(names)), _json_type("string", "array")],
    "number": int,
    "origin": _text(origin_seconds, _json_type("string", "number")),
    "partitions": Annotated[tuple[str, ...], BeforeValidator(converted_by(entries)), _json_type("string", "array")],
    "path": str,
    "settings": Annotated[
        dict[str, str],
        WithJsonSchema({"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}}),
    ],
    "size": Annotated[int, BeforeValidator(converted_by(size)), _json_type("string", "integer")],
    "stage_name": _text(_name, WithJsonSchema({"type": "string", "pattern": f"^{_NAME.pattern}$"})),
    "switch": bool,
    "text": str,
    "types": Annotated[str, _json_type("string", "object")],
    "window": _text(parse_window),
    "windows": _parsed_texts(parse_windows),
}


def model_type(declared: Option) -> Any:
    """Return the type of an option in the model of a job, which checks its value; texts of a window stay texts."""
    return declared.annotation if declared.kind == "word" else _MODEL_TYPES[declared.kind]


def window_value(declared: Option, text: Any) -> Any:
    """Return what the window takes for the value that a job has: durations and times as seconds, all else as it is.

    Raises `SpecError` or `ConfigError` where the value is none of its kind.
    """
    return _OF_WINDOW[declared.kind](text) if declared.kind in _OF_WINDOW and text is not None else text


_OF_WINDOW: Mapping[Kind, Callable[[Any], Any]] = {
    "distinct": lambda text: None if text is None else parse_distinct(text),
    "duration": duration_seconds,
    "expression": parse_expression,
    "join": parse_join,
    "lets": lambda texts: tuple(map(parse_let, texts)),
    "origin": origin_seconds,
}
