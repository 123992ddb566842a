"""Links, and what is neither a file nor a folder: each real file once, and nothing passed over without a word."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.readers import column, source
from wincli.readers.files.listing import list_files, list_folders
from wincli.windowing.errors import ConfigError, InputError
from wincli.writers.output.output import refuse_overlap
from wincli.writers.places.place import locate


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(*names: str) -> None:
    for name in names:
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"a\n{path.name}\n")


def link(at: str, to: str) -> None:
    Path(at).parent.mkdir(parents=True, exist_ok=True)
    Path(at).symlink_to(to)


def listed(*paths: str, **options: bool) -> list[str]:
    return [file.place.shown for file in list_files(paths, **options).files]


LINKS = {
    "a folder in itself": (
        "in/a.csv in/d/b.csv",
        {"in/loop": ".", "in/d/up": "..", "in/d/out_of_it": "../.."},
        dict.fromkeys(("in", "in/**/*.csv", "in/**", "**"), "in/a.csv in/d/b.csv"),
    ),
    "two folders in each other": (
        "x/a.csv y/b.csv",
        {f"{one}/{at}": f"../{other}" for one, other in ("xy", "yx") for at in range(12)},
        {
            **dict.fromkeys(["x", "x/**/*.csv"], "x/0/b.csv x/a.csv"),
            **dict.fromkeys(["x y", "y x", "x/** y/**"], "x/a.csv y/b.csv"),
        },
    ),
    "a folder elsewhere": (
        "far/p/q.csv in/a.csv",
        {"in/l1": "../far", "in/l2": "../far/p"},
        {
            "in": "in/a.csv in/l1/p/q.csv",
            "in/l2": "in/l2/q.csv",
            **dict.fromkeys(["in far", "far in"], "far/p/q.csv in/a.csv"),
        },
    ),
    "a file and a link to it": (
        "in/b.csv",
        {"in/a.csv": "b.csv"},
        {**dict.fromkeys(["in", "in/*.csv", "in/a.csv in/b.csv"], "in/b.csv"), "in/a.csv": "in/a.csv"},
    ),
    "inputs that overlap": (
        "in/a.csv in/d/b.csv",
        {},
        {"in in/a.csv in/d in/*/*.csv ./in/../in/a.csv": "in/a.csv in/d/b.csv"},
    ),
}


@pytest.mark.parametrize("case", LINKS)
def test_each_file_is_read_once_under_its_own_path_however_many_links_lead_to_it(case: str) -> None:
    files, links, inputs = LINKS[case]
    write(*files.split())
    for at, to in links.items():
        link(at, to)
    for paths, found in inputs.items():
        assert listed(*paths.split()) == found.split(), paths
    names = [path.rpartition("/")[2] for path in files.split()]
    first, *_ = inputs
    assert sorted(column(source(*first.split()), "a")) == sorted(names)


def test_a_link_to_the_newest_day_adds_nothing_and_keeps_the_column_of_the_day() -> None:
    write("in/dt=2026-11-01/a.csv", "in/dt=2026-11-02/b.csv")
    link("in/latest", "dt=2026-11-02")
    assert listed("in") == ["in/dt=2026-11-01/a.csv", "in/dt=2026-11-02/b.csv"]
    assert list_folders("in") == ("dt=2026-11-01", "dt=2026-11-02", "latest")
    assert [str(day) for day in column(source("in"), "dt")] == ["2026-11-01", "2026-11-02"]


@pytest.mark.parametrize("path", ["in", "in/dt=*", "in/dt=*/a.csv"])
def test_a_day_or_a_file_that_is_linked_into_another_day_names_both(path: str) -> None:
    write("in/dt=1/a.csv")
    link("in/dt=2", "dt=1")
    said = "in/dt=1 and in/dt=2 are one folder, and their folders give it other val"
    for look in (lambda: list_files([path]), lambda: list_folders("in")):
        with pytest.raises(InputError, match=said):
            look()
    assert listed("in/dt=2") == ["in/dt=2/a.csv"]
    Path("in/dt=2").unlink()
    link("in/dt=2/a.csv", "../dt=1/a.csv")
    with pytest.raises(InputError, match=r"in/dt=1/a\.csv and in/dt=2/a\.csv are one file"):
        list_files(["in"])


@pytest.mark.parametrize("paths", [("in",), ("in/*.csv",), ("in/a.csv", "in/b.csv")])
def test_two_names_of_one_file_are_an_error_that_names_both(paths: tuple[str, ...]) -> None:
    write("in/a.csv")
    Path("in/b.csv").hardlink_to("in/a.csv")
    said = r"in/a\.csv and in/b\.csv are one file \(a hard link\), whose rows would count"
    with pytest.raises(InputError, match=said):
        list_files(paths)
    assert listed("in/b.csv") == ["in/b.csv"]


@pytest.fixture
def odd() -> Iterator[None]:
    write("in/a.csv")
    link("in/gone.csv", "nowhere")
    link("in/self", "self")
    os.mkfifo("in/fifo")
    bound = socket.socket(socket.AF_UNIX)
    bound.bind("in/socket")
    write("in/_hidden/a.csv")
    os.mkfifo("in/_fifo")
    os.mkfifo("in/.fifo")
    yield
    bound.close()


ODD = ("in/fifo (a FIFO)", "in/gone.csv (a link that leads nowhere)", "in/self (a link that leads nowhere)")
DO = "; remove such things, or skip them with --skip-unreadable"


@pytest.mark.usefixtures("odd")
@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("in", f"{', '.join(ODD)} and 1 more cannot be read"),
        ("in/*.csv", "in/gone.csv (a link that leads nowhere) cannot be read"),
        ("in/*/x.csv", f"{', '.join(ODD[1:])} cannot be read"),
        ("in/fifo", "in/fifo (a FIFO) cannot be read"),
        ("in/gone.csv", "in/gone.csv (a link that leads nowhere) cannot be read"),
        ("/dev/null", "/dev/null (a device) cannot be read"),
    ],
)
def test_what_is_no_file_is_an_error_that_names_it(path: str, what: str) -> None:
    with pytest.raises(InputError) as caught:
        list_files([path])
    assert str(caught.value) == what + DO


@pytest.mark.usefixtures("odd")
def test_entries_that_are_no_files_are_skipped_on_request() -> None:
    found = list_files(["in", "in/*"], skip_unreadable=True)
    assert [file.place.shown for file in found.files] == ["in/a.csv"]
    assert found.skipped == (*ODD, "in/socket (a socket)")
    assert source("in", skip_unreadable=True).skipped == found.skipped


def test_a_partition_that_is_a_dead_link_is_an_error() -> None:
    write("in/dt=1/a.csv")
    link("in/dt=2", "gone")
    with pytest.raises(InputError, match=r"in/dt=2 \(a link that leads nowhere\) cannot be read"):
        list_folders("in")
    assert list_folders("in", skip_unreadable=True) == ("dt=1",)


def test_an_output_below_a_glob_is_found_where_links_lead_in_circles() -> None:
    write("x/a.csv", "y/b.csv", "out/part-0.csv")
    for at in range(12):
        link(f"x/{at}", "../y")
        link(f"y/{at}", "../x")
    refuse_overlap(locate("out"), [f"{Path.cwd()}/x/**/*.csv"])
    link("y/to_out", "../out")
    with pytest.raises(ConfigError, match="output out contains the input"):
        refuse_overlap(locate("out"), [f"{Path.cwd()}/x/**/*.csv"])
