"""The proposed job as a job file with comments."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping

import yaml

from ....windowing.errors import shown
from ....windowing.language.canonical import column_text
from ....windowing.support.addresses.redaction import redacted, redacted_path
from .findings import key_words, order_words, time_words, type_words, window_words
from .proposal import Proposal

_WIDTH = 110


def job_text(proposal: Proposal, name: str) -> str:
    """Return the job file. ``name``: the name of the file, for the commands in its first lines."""
    return "\n".join(line.rstrip() for line in _lines(proposal, shown(name))) + "\n"


def _lines(proposal: Proposal, name: str) -> Iterator[str]:
    yield from _head_lines(proposal, name)
    yield ""
    yield from _place_lines(proposal)
    yield ""
    yield from _time_lines(proposal)
    yield ""
    yield from comment(key_words(proposal))
    if proposal.key:
        yield from _list_lines("key", [column_text(each) for each in proposal.key])
    yield ""
    yield from comment(window_words(proposal))
    yield f"window: {scalar(proposal.window)}"
    yield "agg:"
    yield from (f"  {scalar(each)}: {scalar(call)}" for each, call in aggregates(proposal).items())


def _head_lines(proposal: Proposal, name: str) -> Iterator[str]:
    what = "Sessions" if proposal.is_session else "Windows"
    yield from comment([f"{what} over {shown(proposal.inputs[0])}, proposed from {proposal.sample.extent}."])
    yield "#"
    yield f"#   wincli test {name}"
    yield f"#   wincli run {name}"
    yield "#"
    yield from comment(["A proposal knows the rows and not what they mean: change what you know better."])


def _place_lines(proposal: Proposal) -> Iterator[str]:
    options = proposal.sample.options
    inputs = list(map(redacted_path, proposal.inputs))
    if inputs != list(proposal.inputs):
        yield from comment(["Its secrets are left out: keep them in the environment, or write ${NAME} for each."])
    yield from _list_lines("input", inputs)
    yield f"output: {scalar(proposal.output)}"
    if options.format != "auto":
        yield f"input_format: {options.format}"
    if options.delimiter != ",":
        yield f"delimiter: {scalar(options.delimiter)}"


def _time_lines(proposal: Proposal) -> Iterator[str]:
    times = proposal.times
    yield from comment(time_words(proposal))
    yield from _mapping_lines("schema", proposal.types)
    yield from comment(type_words(proposal))
    if times is None:
        return
    if times.let is not None:
        yield from _mapping_lines("let", {times.column: times.let})
    yield from comment(order_words(proposal))
    yield f"order_by: {scalar(column_text(times.column))}"


def aggregates(proposal: Proposal) -> dict[str, str]:
    """Return the aggregates of the job by name: a count, and the mean of each measure."""
    return {"rows": "count()"} | {f"mean_{name}": f"mean({column_text(name)})" for name in proposal.measures}


def comment(sentences: Iterable[str]) -> Iterator[str]:
    """Yield sentences as lines of a comment."""
    for line in textwrap.wrap(
        redacted(shown(" ".join(sentences))), _WIDTH, break_long_words=False, break_on_hyphens=False
    ):
        yield f"# {line}"


def scalar(text: str) -> str:
    """Return a text as a value of YAML, in quotes where it would be something else without."""
    try:
        is_plain = yaml.safe_load(f"- {text}") == [text] and yaml.safe_load(f"a: {text}") == {"a": text}
    except (yaml.YAMLError, ValueError):
        is_plain = False
    return text if is_plain and "\n" not in text and text.isprintable() else json.dumps(text)


def _list_lines(key: str, values: Iterable[str]) -> Iterator[str]:
    texts = [scalar(value) for value in values]
    if len(texts) == 1:
        yield f"{key}: {texts[0]}"
        return
    yield f"{key}:"
    yield from (f"  - {text}" for text in texts)


def _mapping_lines(key: str, values: Mapping[str, str]) -> Iterator[str]:
    if values:
        yield f"{key}:"
        yield from (f"  {scalar(name)}: {scalar(text)}" for name, text in values.items())
