"""The phases of a run in words, from the labels of its tasks."""

from __future__ import annotations

from collections.abc import Mapping

from ...windowing.spark.boot import Progress

_WORDS: Mapping[str, str] = {
    "combine": "scanning long keys",
    "compare states": "comparing the state with the one before",
    "cores": "asking the cluster for its cores",
    "count": "scanning long keys",
    "follow": "scanning long keys",
    "late rows": "looking for late rows",
    "look ahead": "checking the order of rows",
    "ordered pass": "following the watermark",
    "read types": "finding the types of text columns",
    "rejects": "writing rejected rows",
    "sample": "sampling rows",
    "scan": "scanning windows",
    "send code": "sending code to the cluster",
    "watermark": "following the watermark",
}
_EXCHANGE = "exchange and scan"


def phase_of(seen: Progress) -> str:
    """Return the phase of a run in words, after the unit and the stage that its label begins with."""
    head, sign, label = seen.label.rpartition(": ")
    return f"{head}{sign}{_words(label, seen.stage < seen.stages)}"


def _words(label: str, is_before_last: bool) -> str:
    if label == _EXCHANGE:
        return "sorting rows" if is_before_last else "scanning windows"
    verb, _, name = label.partition(" ")
    if verb == "enrich":
        return f"looking up {name}"
    return f"writing {name}" if verb == "write" else _WORDS.get(label, label)
