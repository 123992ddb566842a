"""What is wrong with a command line or its input is told before anything is written, with a caret where a spec is."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.places import blocks_of
from support.processes import wincli, write

FILES = {
    **{"log/a.csv": "ts,user,amount,ok\n1,a,5,true\n2,b,6,false\n", "odd/a.log": "ts\n1\n"},
    **{"prices/a.jsonl": '{"t":1,"user":"a","price":"2.5","items":2}\n'},
    **{"times/a.csv": "ts,due\n2026-11-01T00:00:00,2026-11-02T00:00:00\n"},
    **{"a.csv": "", "a.jsonl": "", "quote.csv": 'ts,note\n1,plain\n2,"two\n3,b\n'},
    **{"hidden/_a.csv": "ts\n1\n", "hidden/.b.csv": "ts\n1\n", "empty/below/.a": ""},
    **{"broken.parquet": "PAR1 and no more", "plain.csv.gz": "ts\n1\n"},
    **{"two/a.csv": "ts\n1\n", "two/b.jsonl": '{"ts":1}\n', "notes.txt": "mine"},
}


def mistakes() -> Iterator[object]:
    """The exit code, the words and the message of each mistake."""
    code = 0
    for block in blocks_of("mistakes/runs"):
        words, _, text = block.partition("\n")
        if not text:
            code = int(words.split()[-1]) if words.startswith("# exit code") else code
        else:
            yield pytest.param(code, shlex.split(words), text, id=words)


@pytest.mark.parametrize(("code", "words", "text"), [*mistakes()])
def test_a_mistake_is_told_and_nothing_is_written(
    fails: Callable[..., None], tmp_path: Path, code: int, words: list[str], text: str
) -> None:
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    fails(code, text, *words)


def test_in_a_process_of_its_own(tmp_path: Path) -> None:
    write(tmp_path / "in", a__csv="ts\n1\n")
    ran = wincli("run", "-w", "dleta(ts, 60)", "in", "out", cwd=tmp_path)
    text = "unknown window 'dleta'; did you mean 'delta'?\n  dleta(ts, 60)\n  ^^^^^"
    assert (ran.code, ran.out, ran.err) == (2, "", f"wincli: error: {text}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
