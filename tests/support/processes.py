"""The command line as others run it: as a process, in a folder, judged by what it says and leaves behind."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

WINCLI = Path(sys.executable).with_name("wincli")
MASTER = "local[2]"
REASON_COLUMNS = {"_reason": "reason", "_file": "file", "_row": "line", "_detail": "detail", "_text": "text"}
_SUMMARY = re.compile(r"^wincli: (.*), \d+\.\d s, [\d,]+ rows?/s -> (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def summary(self) -> str:
        """The counts of the closing line, which is the last: all that comes before the seconds."""
        found = _SUMMARY.search(self.err)
        assert found, self.err
        assert found.end() == len(self.err.rstrip("\n")), self.err
        return found[1]

    @property
    def notes(self) -> list[str]:
        return [line.removeprefix("wincli: note: ") for line in self.err.splitlines() if ": note: " in line]


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment less what would change what wincli does, and ``more``."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("WINCLI_", "SPARK_", "PYSPARK_", "PYTHON"))}
    return {**kept, **(more or {})}


def run_args(args: Sequence[str]) -> list[str]:
    """``wincli run`` on two cores, unless ``args`` say otherwise."""
    return ["run", *args, *([] if "--master" in args else ["--master", MASTER])]


def start(
    args: Sequence[str], cwd: Path, env: Mapping[str, str] | None = None, before: Sequence[str] = ()
) -> subprocess.Popen[str]:
    """Start wincli in a session of its own, as a shell would; ``before``: words to put before the command."""
    command = [*before, str(WINCLI), *args]
    return subprocess.Popen(
        command, cwd=cwd, env=environment(env), text=True, stdout=-1, stderr=-1, start_new_session=True
    )


def ended(process: subprocess.Popen[str]) -> Ran:
    out, err = process.communicate(timeout=180)
    return Ran(process.returncode, out, err)


def wincli(*args: str, cwd: Path, env: Mapping[str, str] | None = None, before: Sequence[str] = ()) -> Ran:
    """Run wincli to its end."""
    return ended(start(args, cwd, env, before))


def tree(folder: Path) -> dict[str, bytes | None]:
    """Everything below a folder, hidden or not: the bytes of files, None for folders."""
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in sorted(folder.rglob("*"))}


def write(folder: Path, **files: str) -> None:
    """Write text files; in their names ``__`` is a point."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def table(out: Path) -> pa.Table:
    """The rows of a result, as any reader sees them, in the order of its parts."""
    form = next(p.suffix[1:] for p in sorted(out.glob("part-*")))
    return ds.dataset(out, format={"jsonl": "json"}.get(form, form)).to_table()


def rows(out: Path, *columns: str) -> list[Any]:
    """The rows of a Parquet result as tuples of ``columns`` (bare values where it is one)."""
    lists = [table(out)[name].to_pylist() for name in columns]
    return lists[0] if len(lists) == 1 else list(zip(*lists, strict=True))


def rejected(out: Path, *columns: str, folder: str = "_rejected") -> list[tuple[Any, ...]]:
    """The rejected rows of a result: what ``REASON_COLUMNS`` names is told of each, other names are columns of the
    row."""
    files = sorted((out / folder).glob("rejects-*.ndjson"))
    read = [json.loads(line) for path in files for line in path.read_text().split("\n") if line]
    return [
        tuple(row[REASON_COLUMNS[name]] if name in REASON_COLUMNS else (row["row"] or {}).get(name) for name in columns)
        for row in read
    ]


def manifest(out: Path) -> dict[str, Any]:
    return dict(json.loads((out / "_wincli" / "manifest.json").read_text()))
