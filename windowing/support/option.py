"""The declaration of an option: one value from which its flag, variable, key, default, help and checks follow.

An option stands where its value is used: as an attribute of a class, whose type it has, set to `option`. Nothing heavy
is imported for it, since help and completion read declarations, too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from types import UnionType
from typing import Any, Final, Literal, TypeAlias, TypeVar, Union, get_args, get_origin

Kind: TypeAlias = Literal[
    "calls", "character", "distinct", "duration", "enrichments", "expectations", "expression", "join", "lets", "names",
    "number", "origin", "partitions", "path", "settings", "size", "stage_name", "switch", "text", "types",
    "window", "windows", "word",
]  # fmt: skip
"""How a text becomes the value of an option. A flag, a job file and the library each have a table of these."""

Group: TypeAlias = Literal["Window", "Input", "Output", "Incremental runs", "Spark", "Messages"]

GROUPS: tuple[Group, ...] = get_args(Group)
"""The groups of options, as the help lists them."""

REQUIRED: Final = object()
"""The default of an option that must be given."""

_METADATA = "option"
_KINDS: dict[Any, Kind] = {bool: "switch", int: "number", str: "text", tuple[str, ...]: "names"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """The declaration of one option.

    ``name``: its key in job files.
    ``attribute``: the attribute that has its value.
    ``annotation``: the type of that attribute.
    ``kind``: how a text becomes its value.
    ``default``: as a job file writes it; None, or an empty tuple or mapping: none; `REQUIRED`: it must be given.
    ``help``: what it does, for the help page.
    ``group``: its group on the help page.
    ``key_help``: what it does, for the JSON Schema of job files.
    ``has_flag``: whether it is an option of the command line, too, and not only a key of job files.
    ``short``: its short flag, such as ``-w``; empty: none.
    ``metavar``: the form of its value on the help page; None: that of its kind.
    ``complete``: the function of `cli.completion` for its values; None: that of its kind.
    ``below``: the option below which the help lists it, where that is not the one declared before.
    ``minimum``, ``maximum``: the bounds of a number, both inclusive; None: no bound.
    ``is_shared``: whether a job file with stages may have it beside them.
    ``decides_windows``: whether a state is only for runs with the same value (options of a window).
    ``decides_result``: whether two runs with different values are different runs (options of the job; those of a
        window all are).
    """

    name: str
    attribute: str
    annotation: Any
    kind: Kind
    default: Any
    help: str
    group: Group
    key_help: str
    has_flag: bool = True
    short: str = ""
    metavar: str | None = None
    complete: str | None = None
    below: str | None = None
    minimum: int | None = None
    maximum: int | None = None
    is_shared: bool = False
    decides_windows: bool = False
    decides_result: bool = False

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        return "WINCLI_" + self.name.upper()

    @property
    def words(self) -> tuple[str, ...]:
        """The words that its value is one of; none, where it may be any text."""
        return get_args(without_none(self.annotation)) if self.kind == "word" else ()

    @property
    def has_default(self) -> bool:
        return self.default not in (None, (), {}, REQUIRED)


def option(
    default: Any, text: str, group: Group, kind: Kind | None = None, *, name: str = "", key_help: str = "", **more: Any
) -> Any:
    """Declare an attribute of a class as an option; the attributes of `Option` say what the arguments mean.

    ``name``: empty: that of the attribute. ``kind``: None: that of its type. ``key_help``: empty: ``text``. ``more``:
    attributes of `Option` that have a default. In a dataclass ``default`` is that of the field.
    """
    written = default
    if isinstance(default, Fraction):  # seconds are texts in job files
        written = str(default) if default.denominator == 1 else str(float(default))
    given = {"default": written, "help": text, "group": group, "key_help": key_help or text, **more}

    def declare(attribute: str, annotation: Any) -> Option:
        kind_ = kind
        if kind_ is None:
            plain = without_none(annotation)
            kind_ = "word" if get_origin(plain) is Literal else _KINDS[plain]
        return Option(name=name or attribute, attribute=attribute, annotation=annotation, kind=kind_, **given)

    return field(default=default, metadata={_METADATA: declare})


def options_of(declared: type) -> tuple[Option, ...]:
    """Return the options that a class declares, in its order. Its annotations are types, not texts."""
    fields = getattr(declared, "__dataclass_fields__", None) or vars(declared)
    found = []
    for attribute, annotation in declared.__annotations__.items():
        declare = getattr(fields.get(attribute), "metadata", {}).get(_METADATA)
        if declare is not None:  # a field without it is no option of its own
            found.append(declare(attribute, annotation))
    return tuple(found)


F = TypeVar("F", bound=Callable[..., Any])


def with_parameters(function: F, more: Iterable[inspect.Parameter], eval_str: bool = False) -> F:
    """Show what ``**options`` of a function takes in its signature, before its other arguments by name alone.

    ``eval_str``: whether annotations that are texts become types there.
    """
    whole = inspect.signature(function, eval_str=eval_str)
    own = whole.parameters.values()
    first = [each for each in own if each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    last = [each for each in own if each.kind is inspect.Parameter.KEYWORD_ONLY]
    function.__signature__ = whole.replace(parameters=[*first, *more, *last])  # type: ignore[attr-defined]
    return function


def without_none(annotation: Any) -> Any:
    """Return the type of a value that is given: ``X`` of ``X | None``."""
    if get_origin(annotation) in (Union, UnionType):
        (annotation,) = (part for part in get_args(annotation) if part is not type(None))
    return annotation


def option_text(value: Any) -> str:
    """Return the text of an option's value, which is a plain JSON value: ``none``, ``a, b``, ``count(2)``."""
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)
