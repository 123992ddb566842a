"""What `scripts/golden` compares: all that commands leave and print, less that in which two runs of a program differ.

Each mask has its reason, and is as narrow as it can be: of a JSON document the value of a key, of a text what the
pattern matches and nothing around it. Ids are not removed but numbered in the order in which they come up, so that it
still shows which run a file belongs to.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

KEYS: Mapping[str, str] = {
    "seconds": "how long phases took",
    "phases": "the same in messages in JSON",
    "versions": "of packages, and of wincli itself, which a checkout may raise",
    "checksum of the document": "it covers the ids and times of the document",
}
NEW = {"digest", "digests", "bases"}
"""Keys that only one of the two checkouts records: they are left out on both sides."""
TEXTS: tuple[tuple[str, str, str], ...] = (
    (
        r"units (may be computed beforehand: --jobs N runs up to N at the same time"
        r"|run one after the other: open windows of one unit go on in the next)",
        "units <in which order>",
        "a plan says it, and only one checkout computes units on a state beforehand",
    ),
    (r"(; choose an output folder|; choose a state folder) apart from (it|the inputs)", r"\1 apart", "in fewer words"),
    (r'(\["wincli","|pypi\.org/project/wincli/)\d+\.\d+\.\d+', r"\1<version>", "of a checkout"),
    (r'(wincli_info\{[^}]*version=")[\d.]+', r"\1<version>", "the same in metrics"),
    (r'dapterVersion": "[\d.]+", "version": "[\d.]+"', 'dapterVersion": <version>', "the same in lineage"),
    (r"\b\d+(\.\d+)? s, [\d,]+ rows?/s\b", "<speed>", "the closing summary: seconds and rows a second"),
    (r'"phases":\[\[.*?\]\]', '"phases":<seconds>', "a report has how long each phase took"),
    (
        r"^(ok|note) ( +)(memory|temporary|cache) .*$",
        r"\1 \2\3 <free>",
        "`wincli doctor` says how much is free now, and in use",
    ),
    (r"about [\d.,]+ \w+, at most [\d.,]+ \w+(?=, by \d+ earlier run)", "about <time>", "a plan says it"),
    (r'"phases": \{[^}]*\}', '"phases": <seconds>', "messages in JSON say how long phases took"),
    (r'"(seconds|rows_per_second)": \d+(\.\d+)?(e-\d+)?(?=[,}\n])', r'"\1": <time>', "and how long all took"),
    (r"(_seconds\{[^}]*\}) \d+\.\d+(e-\d+)?$", r"\1 <time>", "and metrics, for Prometheus"),
    (r"(?<=[;,] )([a-z ]+) \d+\.\d+ s\b", r"\1 <time>", "so does -v in words, as in `1 slices; scan 0.2 s`"),
    (r'\btime="\d+\.\d+"', 'time="<time>"', "a report in JUnit's XML says how long cases took"),
    (r"^\d\d/\d\d/\d\d \d\d:\d\d:\d\d (?=WARN|INFO|ERROR)", "<now> ", "Spark's log says when"),
    (r"\b[\d,]+(\.\d+)? (ms|s)\)", "<time>)", "the time that a case of `wincli test` took"),
)
"""Patterns of text, what stands in their place, and why."""


LEFT_OUT = ("*.avro", "catalog.db", "*.pyc")
"""Binary files of Iceberg with ids and times in them (jobs read the tables with pyiceberg), and Python's own."""


@dataclass
class Masks:
    """The masks of one job.

    ``began``, ``ended``: when its commands ran, in seconds since 1970.
    ``programs``: the folders of the program and of its environment, which `wincli doctor` prints.
    ``is_numbered``: False where files lie in a store, which are seen in the end only: nothing tells which came first.
    ``ids``: those that came up so far, and what stands in their place.
    """

    began: float
    programs: tuple[str, ...]
    is_numbered: bool = True
    ended: float = 0.0
    ids: dict[str, str] = field(default_factory=dict)
    _seen: set[tuple[Path, int]] = field(default_factory=set)

    def number(self, found: str) -> str:
        """Return the name of an id."""
        if found not in self.ids:
            self.ids[found] = f"<id {len(self.ids) + 1}>" if self.is_numbered else "<id>"
            if len(found) == 12:  # a Delta table takes it as a number
                self.ids[str(int(found, 16))] = f"<number of {self.ids[found]}>"
        return self.ids[found]

    def observe(self, folder: Path) -> None:
        """Number the ids that a command has left; of those of one command the first to be written first."""
        patterns = ("manifest*.json", "unit.json", "_delta_log/*.json", "*.metadata.json")
        for time_of, path in sorted(
            (path.stat().st_mtime_ns, path) for each in patterns for path in folder.rglob(each)
        ):
            if (path, time_of) not in self._seen:
                self._seen.add((path, time_of))
                for found in collect_ids(_document(path)):
                    self.number(found)

    def text(self, text: str) -> str:
        """Mask a text."""
        for folder in self.programs:
            text = text.replace(folder, "<checkout>")
        for pattern, instead, _ in TEXTS:
            text = re.sub(pattern, instead, text, flags=re.MULTILINE)
        for day in {time.strftime("%Y-%m-%d", time.gmtime(each)) for each in (self.began, self.ended)}:
            clock = r"\d\d:\d\d(:\d\d(\.\d+)?)?(\+00:00|Z| UTC)?"
            text = re.sub(rf"{day}[T ]{clock}", "<now>", text)  # no log is of today
        text = re.sub(r"\b(1\d{9}(\d{3}|\d{6})?)(\.\d+)?\b", self._instant, text)
        text = re.sub(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", self._numbered, text)
        for known, name in self.ids.items():
            text = text.replace(known, name)
        text = re.sub(r"(?<=-)[0-9]{12}(?=[-.])", self._numbered, text)  # of a part, without a letter by chance
        return re.sub(r"\b(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{12}\b", self._numbered, text)  # of a run that is gone

    def _numbered(self, found: re.Match[str]) -> str:
        return self.number(found[0])

    def _instant(self, found: re.Match[str]) -> str:
        """Mask an instant since 1970 while the job ran, in seconds, milliseconds or microseconds."""
        seconds = int(found[1]) / 10 ** (len(found[1]) - 10)
        return "<now>" if self.began - 2 <= seconds <= self.ended + 2 else found[0]

    def document(self, told: Any) -> Any:
        """Mask a JSON document; ids first, so that texts around them know them."""
        if isinstance(told, dict):
            return {self.text(name): self._value(name, value) for name, value in told.items() if name not in NEW}
        if isinstance(told, list):
            return [self.document(each) for each in told]
        if type(told) is int and (shown := self.text(str(told))) != str(told):
            return shown
        return self.text(told) if isinstance(told, str) else told

    def _value(self, name: str, value: Any) -> Any:
        if name == "format" and value in (2, 3):  # of the record of a unit: with digests it is 3
            return "<format of a record>"
        if name in KEYS and value is not None:
            return f"<{name} of {sorted(value)}>" if isinstance(value, dict) else f"<{name}>"
        return self.document(value)


def collect_ids(told: Any) -> Iterator[str]:
    """The ids of runs, states and snapshots that a document names."""
    if isinstance(told, dict):
        for name, value in told.items():
            if name in ("run", "state", "began", "previous", "numbers", "token") and re.fullmatch(
                r"[0-9a-f]{12}", str(value)
            ):
                yield value
            if name.endswith("snapshot-id") and type(value) is int and value > 0:  # Iceberg draws it
                yield str(value)
            yield from collect_ids(value)
    if isinstance(told, list):
        for each in told:
            yield from collect_ids(each)
    if isinstance(told, str) and (found := re.search(r"part-\d+-([0-9a-f]{12})\.", told)):  # a file of a table
        yield found[1]


def contents(folder: Path, masks: Masks) -> dict[str, str]:
    """The files below a folder, masked, by their masked names."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() or path.is_symlink())
    paths = [path for path in paths if not any(path.match(pattern) for pattern in LEFT_OUT)]
    documents = {path: told for path in paths if (told := _document(path)) is not None}
    masks.observe(folder)
    told: dict[str, list[str]] = {}
    for path in paths:
        name = masks.text(str(path.relative_to(folder)))
        told.setdefault(name, []).append(_file(path, documents.get(path), masks))
    found = {}
    for name, texts in told.items():  # names that only ids tell apart
        found |= {f"{name}{f' ({n})' if n else ''}": text for n, text in enumerate(sorted(texts))}
    return found


def _document(path: Path) -> Any:
    if path.suffix != ".json" or path.is_symlink():
        return None
    try:
        text = path.read_text()
        if path.parent.name == "_delta_log":
            return [json.loads(line) for line in text.splitlines()]
        return json.loads(text)
    except ValueError:
        return None


def _file(path: Path, told: Any, masks: Masks) -> str:
    if path.is_symlink():
        return f"-> {path.readlink()}"
    if told is not None:
        if isinstance(told, list) and path.parent.name == "_delta_log":
            told = sorted(json.dumps(each, sort_keys=True) for each in told)  # deltalake writes keys in any order
        if isinstance(told, dict) and "checksum" in told:
            told = {**told, "checksum": "<checksum of the document>"}
        return json.dumps(masks.document(told), indent=1)
    content = path.read_bytes()
    try:
        text = content.decode()
        return masks.text(text)
    except UnicodeDecodeError:
        return f"sha256 {hashlib.sha256(content).hexdigest()}\n{_rows(path, content)}"


def _rows(path: Path, content: bytes) -> str:
    """What is in a binary file, for the one who reads the difference."""
    try:
        if path.suffix == ".parquet":
            from pyarrow import parquet

            file = parquet.ParquetFile(io.BytesIO(content))
            rows, head = file.read(), f"{file.metadata.num_row_groups} row groups, {file.schema_arrow}"
        elif path.suffix == ".orc":
            from pyarrow import orc

            rows = orc.ORCFile(io.BytesIO(content)).read()
            head = str(rows.schema)
        else:
            return ""
        return "\n".join([head, *(str([*row.values()]) for row in rows.to_pylist())])
    except Exception as error:  # damaged, or a time that Python does not hold
        return repr(error)


def first_difference(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> str:
    """Say where two jobs begin to differ; empty where they do not."""
    for at, (one, other) in enumerate(zip(ours["commands"], theirs["commands"], strict=True)):
        for part in ("code", "out", "err"):
            if one[part] != other[part]:
                return f"command {at + 1}: {' '.join(one['words'])}\n  {part}: {_where(one[part], other[part])}"
    for name in sorted({*ours["files"], *theirs["files"]}):
        one, other = (side["files"].get(name) for side in (ours, theirs))
        if one != other:
            commands = "; ".join(" ".join(each["words"]) for each in ours["commands"])
            what = "only theirs has it" if one is None else "only ours has it" if other is None else _where(one, other)
            return f"after: {commands}\n  file {name}: {what}"
    return ""


def _where(one: Any, other: Any) -> str:
    lines = [str(side).splitlines() for side in (one, other)]
    both = list(zip(*lines, strict=False))
    at = next((n for n, (a, b) in enumerate(both) if a != b), len(both))
    here = [side[at] if at < len(side) else "<end>" for side in lines]
    start = next((n for n, (a, b) in enumerate(zip(*here, strict=False)) if a != b), 0)
    cut = max(0, start - 60)
    ours, theirs = (side[cut : cut + 240] for side in here)
    return f"line {at + 1}, character {start + 1}\n    ours:   {ours}\n    theirs: {theirs}"
