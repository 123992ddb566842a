"""The text form of Prometheus: families of samples, as the textfile collector of node_exporter reads them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ...windowing.errors import shown

_SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{.*\})? (\S+)")


@dataclass(frozen=True, slots=True)
class Sample:
    """One value.

    ``value``: the value.
    ``labels``: label to its value, besides those that all samples of a file have.
    """

    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Gauge:
    """The samples of one name.

    ``name``: its name, with the unit at the end.
    ``help``: what it says.
    ``samples``: its values, each with other labels.
    """

    name: str
    help: str
    samples: tuple[Sample, ...]


def text_of(gauges: Iterable[Gauge], labels: Mapping[str, str]) -> str:
    """Return gauges as text. ``labels``: those that all samples have."""
    return "".join(f"{line}\n" for gauge in gauges if gauge.samples for line in _lines(gauge, labels))


def values_in(text: bytes) -> dict[str, float]:
    """Return the first value of each name in what `text_of` made; nothing where it is damaged."""
    try:
        found = [match for line in text.decode().split("\n") if (match := _SAMPLE.fullmatch(line))]
        return {match[1]: float(match[2]) for match in reversed(found)}
    except ValueError:
        return {}


def _lines(gauge: Gauge, labels: Mapping[str, str]) -> Iterator[str]:
    yield f"# HELP {gauge.name} {_escaped(gauge.help)}"
    yield f"# TYPE {gauge.name} gauge"
    for sample in gauge.samples:
        pairs = ",".join(f'{name}="{_quoted(value)}"' for name, value in {**labels, **sample.labels}.items())
        yield f"{gauge.name}{{{pairs}}} {_number(sample.value)}"


def _number(value: float) -> str:
    """Return a value so that it reads back as the same float; whole numbers without a point."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    """Return the value of a label. Control characters, and bytes that are no text, are shown as messages show them."""
    return _escaped(shown(text)).replace('"', '\\"')
