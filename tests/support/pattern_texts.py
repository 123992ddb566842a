"""Row patterns as texts, read by a reader of the tests' own: what is written to the command and to the references."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from wincli.windowing.expressions.syntax import parse_expression
from wincli.windowing.language.patterns import (
    Alternation,
    Concatenation,
    FollowedBy,
    Pattern,
    Repetition,
    RowPattern,
    Symbol,
)

_SIGNS = re.compile(r"\s*(->|[a-z_]\w*|\{[\d, ]+\}|[()|.?*+])", re.IGNORECASE)
_FORM = re.compile(
    r"(?P<word>match|funnel)\((?P<inner>.*)\)(?: within (?P<within>[\d.]+))?(?P<overlapping>, overlapping)?", re.DOTALL
)


@dataclass
class _Reader:
    signs: list[str]

    def next_is(self, *signs: str) -> bool:
        if self.signs and self.signs[0] in signs:
            self.signs.pop(0)
            return True
        return False

    def alternation(self) -> Pattern:
        parts = [self.sequence()]
        while self.next_is("|"):
            parts.append(self.sequence())
        return parts[0] if len(parts) == 1 else Alternation(tuple(parts))

    def sequence(self) -> Pattern:
        parts = [self.element()]
        while self.signs and self.signs[0] not in ("|", ")"):
            parts.append(self.element())
        return parts[0] if len(parts) == 1 else Concatenation(tuple(parts))

    def element(self) -> Pattern:
        if self.next_is("->"):
            return FollowedBy(self.element())
        if self.next_is("("):
            found = self.alternation()
            assert self.next_is(")")
        else:
            name = self.signs.pop(0)
            found = Symbol(None if name == "." else name)
        rounds: tuple[int, int | None] | None = None
        if self.signs and self.signs[0][0] in "?*+{":
            sign = self.signs.pop(0)
            low, comma, high = sign.strip("{}").replace(" ", "").partition(",")
            least = {"?": 0, "*": 0, "+": 1}.get(sign, int(low) if low.isdecimal() else 0)
            rounds = least, 1 if sign == "?" else int(high) if high else None if comma or sign in "*+" else least
        return found if rounds is None else Repetition(found, *rounds, self.next_is("?"))


def read_pattern(text: str) -> Pattern:
    """The pattern alone, which is known to be well formed."""
    reader = _Reader(_SIGNS.findall(text))
    found = reader.alternation()
    assert not reader.signs, text
    return found


def read_window(text: str) -> RowPattern:
    """``match(..)`` or ``funnel(..)``, its limit in seconds."""
    form = _FORM.fullmatch(text)
    assert form is not None, text
    parts = _parts(form["inner"])
    is_funnel = form["word"] == "funnel"
    named = [part.split("=", 1) for part in (parts if is_funnel else parts[1:])]
    conditions = tuple((name.strip(), parse_expression(text)) for name, text in named)
    pattern = funnel_of([name for name, _ in conditions]) if is_funnel else read_pattern(parts[0])
    within = None if form["within"] is None else Fraction(form["within"])
    return RowPattern(pattern, conditions, within, form["overlapping"] is not None, is_funnel=is_funnel)


def funnel_of(steps: list[str]) -> Pattern:
    """``s1 (-> s2 (-> .. sn)?)?``."""
    found: Pattern = Symbol(steps[-1])
    for step in reversed(steps[:-1]):
        found = Concatenation((Symbol(step), Repetition(FollowedBy(found), 0, 1)))
    return found


def pattern_text(pattern: Pattern) -> str:
    """A pattern as text, with all its brackets."""
    match pattern:
        case Symbol(name):
            return name or "."
        case Concatenation(parts):
            return "(" + " ".join(map(pattern_text, parts)) + ")"
        case Alternation(parts):
            return "(" + " | ".join(map(pattern_text, parts)) + ")"
        case FollowedBy(of):
            return f"(-> {pattern_text(of)})"
        case Repetition(of, least, most, is_reluctant):
            rounds = f"{{{least},{'' if most is None else most}}}"
            return f"({pattern_text(of)}){rounds}{'?' if is_reluctant else ''}"
    raise AssertionError(pattern)


def window_text(pattern: RowPattern, conditions: Mapping[str, str] | None = None) -> str:
    """The window as text; ``conditions``: those to write instead of its own."""
    known = {name: str(condition) for name, condition in pattern.conditions} if conditions is None else conditions
    within = "" if pattern.within is None else f" within {float(pattern.within):g}"
    shown = pattern_text(pattern.pattern)
    named = ", ".join(f"{name} = {text}" for name, text in known.items())
    return f"match({shown}, {named}){within}{', overlapping' if pattern.is_overlapping else ''}"


def _parts(text: str) -> list[str]:
    """Parts between the commas that are in no brackets and no quotes."""
    found, level, is_quoted = [""], 0, False
    for sign in text:
        is_quoted ^= sign == "'"
        level += 0 if is_quoted else (sign in "({[") - (sign in ")}]")
        if sign == "," and level == 0 and not is_quoted:
            found.append("")
        else:
            found[-1] += sign
    return [part.strip() for part in found]
