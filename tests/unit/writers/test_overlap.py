"""No run may read what it writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from wincli.windowing.errors import ConfigError
from wincli.windowing.support.file_systems import file_system_of
from wincli.writers.output.output import refuse_each_other, refuse_overlap
from wincli.writers.places.place import Place, locate


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs/2026").mkdir(parents=True)
    (tmp_path / "logs/2026/a.csv").write_text("")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/part-00000.csv").write_text("")
    (tmp_path / "link").symlink_to("logs")
    return tmp_path


@pytest.mark.parametrize(
    ("out", "source", "how"),
    [
        ("logs", "logs", "is the input logs itself"),
        ("logs/", "./logs", "is the input"),
        ("link", "logs", "is the input"),
        ("logs/out", "logs", "is inside the input logs"),
        ("logs/2026/deep/out", "logs", "is inside the input"),
        ("logs/out", "link", "is inside the input"),
        ("link/out", "logs", "is inside the input"),
        ("logs", "logs/2026", "contains the input logs/2026"),
        ("logs", "link/2026/a.csv", "contains the input"),
        (".", "logs", "contains the input logs"),
        ("logs/2026/a.csv", "logs/2026/a.csv", "is the input"),
        ("logs/out", "logs/*", "is inside the input logs/[*]"),
        ("logs/out/x", "logs/o?t", "is inside the input"),
        ("logs/a/b/out", "logs/**/*.csv", "is inside the input"),
        ("logs", "logs/*.csv", "contains the input"),
        ("logs", "logs/**/*.csv", "is inside the input"),
        ("out", "*/part-*.csv", "contains the input"),
        ("logs/out", "file://{here}/logs", "is inside the input"),
    ],
)
def test_refused(here: Path, out: str, source: str, how: str) -> None:
    with pytest.raises(ConfigError, match=f"output {out} {how}") as caught:
        refuse_overlap(locate(out), [source.format(here=here)])
    assert str(caught.value).endswith("choose an output folder apart from the inputs")


@pytest.mark.parametrize(
    ("out", "source"),
    [
        ("out", "logs"),
        ("logs2", "logs"),
        ("logs", "logs2"),
        ("out", "logs/**"),
        ("logs/out", "logs/*.csv"),
        ("logs/out", "logs/2026"),
        ("logs/2026/out", "logs/2026/a.csv"),
        ("new", "*/part-*.csv"),
        ("out", "s3://bucket/out?region=eu-west-1"),
    ],
)
def test_apart(here: Path, out: str, source: str) -> None:
    refuse_overlap(locate(out), [source])


def test_a_file_with_brackets_in_its_name_is_no_glob(here: Path) -> None:
    (here / "logs[1]").mkdir()
    with pytest.raises(ConfigError, match="is inside the input"):
        refuse_overlap(locate("logs[1]/out"), ["logs[1]"])


def test_every_input_is_looked_at(here: Path) -> None:
    with pytest.raises(ConfigError, match=r"contains the input out/part-00000\.csv"):
        refuse_overlap(locate("out"), ["logs", "out/part-00000.csv"])


def test_in_a_store_too() -> None:
    store, _ = file_system_of("s3://bucket/data/in?region=eu-west-1")
    for inner, how in (("in/out", "is inside"), ("in", "is the input"), ("", "contains")):
        out = Place("s3://..", store, f"bucket/data/{inner}".rstrip("/"))
        with pytest.raises(ConfigError, match=how):
            refuse_overlap(out, ["s3://bucket/data/in?region=eu-west-1"])
    refuse_overlap(Place("s3://..", store, "bucket/data/in2"), ["s3://bucket/data/in?region=eu-west-1"])


def test_a_root_holds_everything_and_a_glob_may_begin_there(here: Path) -> None:
    with pytest.raises(ConfigError, match="is inside the input /"):
        refuse_overlap(locate("out"), ["/"])
    refuse_overlap(locate("logs"), ["/*.csv"])
    with pytest.raises(ConfigError, match="is inside the input"):
        refuse_overlap(locate("out"), ["/*/**"])


def test_outputs_of_a_job_are_compared_with_all_others(here: Path) -> None:
    many = [f"deep/{n}" for n in range(3000)]
    refuse_each_other(many)
    refuse_each_other(["a", "ab", "b/a", "b/ab", "a-b"])
    for outputs, words in (
        ([*many, "deep/7"], "deep/7 and deep/7 are the same output"),
        ([*many, "deep/7/x/y"], "output deep/7/x/y is inside output deep/7"),
        ([*many, "deep"], "output deep/0 is inside output deep"),
        (["link", "logs"], "link and logs are the same output"),
        (["link/x", "logs"], "output link/x is inside output logs"),
    ):
        with pytest.raises(ConfigError, match=words):
            refuse_each_other(outputs)
