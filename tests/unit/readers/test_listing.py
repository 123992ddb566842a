from __future__ import annotations

import datetime as dt
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.readers import column, read_all, source
from wincli.windowing.errors import ConfigError, InputError


def write(path: Path, text: str = "a\n1\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def shown(*paths: Path | str, **options: object) -> list[str]:
    return [file.path for file in source(*paths, **options).files]


def test_a_folder_is_read_recursively_by_path_without_hidden_names(tmp_path: Path) -> None:
    for name in ("b.csv", "a/z.csv", "a-x.csv", "_SUCCESS", ".b.csv.crc", "_old/x.csv", "a/.tmp/x.csv"):
        write(tmp_path / "in" / name)
    assert shown(tmp_path / "in") == [f"{tmp_path}/in/{name}" for name in ("a-x.csv", "a/z.csv", "b.csv")]


def test_paths_are_shown_as_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "in/x.csv")
    monkeypatch.chdir(tmp_path)
    for path in ("in/", "in/*.csv", "in/x.csv", "*/x.csv"):
        assert shown(path) == ["in/x.csv"]
        assert shown(f"file://{tmp_path}/{path}") == [f"file://{tmp_path}/in/x.csv"]


def test_globs_match_names_folders_and_depths(tmp_path: Path) -> None:
    for name in ("d1/x.csv", "d1/deep/y.csv", "d2/x.csv", "e/x.csv", "d1/_z.csv", "e/x[1].csv"):
        write(tmp_path / name)
    for pattern, found in {
        "d*": "d1/deep/y.csv d1/x.csv d2/x.csv",
        "d[12]/x.csv": "d1/x.csv d2/x.csv",
        "**/?.csv": "d1/deep/y.csv d1/x.csv d2/x.csv e/x.csv",
        "d1/_*.csv": "d1/_z.csv",
        "e/x[1].csv": "e/x[1].csv",  # what is there is a name first
    }.items():
        assert [path.removeprefix(f"{tmp_path}/") for path in shown(tmp_path / pattern)] == found.split()


def test_files_in_order_of_their_times(tmp_path: Path) -> None:
    for at, name in enumerate(("c.csv", "a.csv", "b.csv")):
        os.utime(write(tmp_path / name, f"a\n{at}\n"), (at + 1000, at + 1000))
    assert column(source(tmp_path, file_order="mtime"), "a") == [0, 1, 2]
    assert column(source(tmp_path), "a") == [1, 2, 0]
    assert source(tmp_path, file_order="mtime").files[0].mtime == "1970-01-01T00:16:40+00:00"


def test_folders_of_hive_are_columns(tmp_path: Path) -> None:
    write(tmp_path / "in/dt=2026-11-01/n=07/kind=a%20b/x.csv", "a\n1\n2\n")
    write(tmp_path / "in/dt=2026-11-02/n=8/kind=__HIVE_DEFAULT_PARTITION__/x.csv", "a\n3\n")
    opened = source(tmp_path / "in")
    assert opened.schema == pa.schema(
        [("a", pa.int64()), ("dt", pa.date32()), ("n", pa.int64()), ("kind", pa.string())]
    )
    assert [tuple(row.values()) for row in read_all(opened).rows] == [
        (1, dt.date(2026, 11, 1), 7, "a b"),
        (2, dt.date(2026, 11, 1), 7, "a b"),
        (3, dt.date(2026, 11, 2), 8, None),
    ]
    assert column(source(tmp_path / "in", schema="n:string"), "n") == ["07", "07", "8"]


@pytest.mark.parametrize("value", ["+5", "1" * 19])
def test_folders_of_numbers_with_a_plus_or_of_many_digits_are_text(tmp_path: Path, value: str) -> None:
    for folder in ("k=1", f"k={value}"):
        write(tmp_path / folder / "a.csv")
    assert sorted(column(source(tmp_path), "k")) == sorted(["1", value])


def test_a_folder_wins_over_a_column_of_its_name_and_a_glob_keeps_it(tmp_path: Path) -> None:
    write(tmp_path / "in/k=1/x.csv", "k,a\nx,1\n")
    write(tmp_path / "in/k=2/x.csv", "k,a\n5,1\n")
    opened = source(tmp_path / "in")
    assert opened.schema == pa.schema([("k", pa.int64()), ("a", pa.int64())])
    assert column(opened, "k") == [1, 2]
    assert column(source(tmp_path / "in/k=*"), "k") == [1, 2]
    assert column(source(tmp_path / "in/k=2"), "k") == [5]


def test_a_folder_that_does_not_fit_its_type(tmp_path: Path) -> None:
    write(tmp_path / "in/k=x/x.csv")
    with pytest.raises(InputError, match=r"in/k=x/x\.csv: folder k=x is not an integer"):
        source(tmp_path / "in", schema="k:int")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("logz", "there is no file or folder {tmp}/logz; did you mean {tmp}/logs?"),
        ("none/x", "there is no file or folder {tmp}/none/x; check the path"),
        ("*.csv", "nothing matches {tmp}/*.csv; check the folder; * stops at /, ** does not"),
        ("empty", "{tmp}/empty holds no files; names that begin with _ or . are skipped"),
        ("hidden", "{tmp}/hidden holds no files; names that begin with _ or . are skipped"),
    ],
)
def test_paths_that_hold_nothing(tmp_path: Path, path: str, message: str) -> None:
    write(tmp_path / "logs/x.csv")
    write(tmp_path / "hidden/_x.csv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError) as caught:
        source(tmp_path / path)
    assert str(caught.value) == message.format(tmp=tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "options"),
    [
        ("x.TSV", "a\tb\n1\t2\n", {}),
        ("x.json", '{"b":2}\n', {}),
        ("log", "a;b\n1;2\n", {"format": "csv", "delimiter": ";"}),
    ],
)
def test_format_is_inferred_from_the_file_name(tmp_path: Path, name: str, text: str, options: dict[str, str]) -> None:
    write(tmp_path / name, text)
    assert column(source(tmp_path, **options), "b") == [2]


def test_a_file_of_parquet_may_be_called_pq(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "x.pq")
    assert column(source(tmp_path), "a") == [1]


def test_formats_that_are_mixed_or_unknown_name_the_files_and_the_flag(tmp_path: Path) -> None:
    write(tmp_path / "in/a.csv")
    write(tmp_path / "in/b.jsonl", "{}\n")
    with pytest.raises(InputError, match=r"in/a\.csv is csv and .*in/b\.jsonl is jsonl; .*--input-format"):
        source(tmp_path / "in")
    (tmp_path / "in/b.jsonl").rename(tmp_path / "in/b.dat")
    with pytest.raises(InputError, match=r"name of .*in/b\.dat gives no format; .*in/a\.csv is csv; .*--input-format"):
        source(tmp_path / "in")
    assert len(source(tmp_path / "in", format="csv").files) == 2


def test_options_that_do_not_fit(tmp_path: Path) -> None:
    write(tmp_path / "x.csv", "amount\n1\n")
    with pytest.raises(ConfigError, match="cannot be a delimiter"):
        source(tmp_path, delimiter=";;")
    opened = source(tmp_path)
    with pytest.raises(InputError, match="no file has a column 'amuont'; did you mean 'amount'"):
        opened.read(opened.splits[0], ["amuont"])
    with pytest.raises(InputError, match="nonsense://x is no address that can be read"):
        source("nonsense://x")


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "x.csv")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("wincli.readers.files.file.Located.open_file", refuse)
    with pytest.raises(InputError, match=r"x\.csv may not be read: permission denied"):
        source(tmp_path)
