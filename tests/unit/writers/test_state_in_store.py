"""A state in an object store: what the local folder promises holds there, and who lost the state changes nothing."""

from __future__ import annotations

import random
import shutil
import sys
import threading
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pytest

from support.numbered_units import DEAD, ME, OTHER, put, record_of, result, state_value, value_of
from support.quick_store import URI, QuickStore, killed_at, never, use, use_for_outputs
from support.s3_server import S3Bucket, S3Server
from wincli.windowing.errors import ConfigError, DamagedError, InputError, OutputError, WincliError
from wincli.writers.commit import store_objects
from wincli.writers.output.output import open_output
from wincli.writers.places import conditional
from wincli.writers.places.conditional import Object
from wincli.writers.places.lock import Owner
from wincli.writers.state import store_storage
from wincli.writers.state.journal import commit_all, commit_together
from wincli.writers.state.layout import is_state
from wincli.writers.state.stage_files import StoreStage
from wincli.writers.state.state import open_state, read_state, state_without_lock


def value_in(root: str, label: str = "u0") -> int | None:
    with open_state(root, ME) as state:
        return state_value(state, label)


# Against a server


@pytest.fixture
def root(s3: S3Bucket) -> str:
    return f"{s3.uri}/states/größe 1%"


def test_units_are_kept_and_pruned(root: str, s3: S3Bucket) -> None:
    assert not is_state(root)
    for ordinal in range(3):
        put(root, ordinal + 10, ordinal=ordinal, keep=2)
    put(root, 22, ordinal=2, keep=2)
    assert is_state(root)
    with open_state(root, ME) as state:
        assert [state_value(state, f"u{ordinal}") for ordinal in range(3)] == [None, 11, 22]
        runs = [record.run for record in state.records]
    assert [name.removeprefix("states/größe 1%/") for name in s3.names()] == [
        ".journal.json",
        ".wincli-state",
        f"u0/.{runs[0]}/unit.json",
        f"u1/.{runs[1]}/s/rows-00000.parquet",
        f"u1/.{runs[1]}/unit.json",
        f"u2/.{runs[2]}/s/rows-00000.parquet",
        f"u2/.{runs[2]}/unit.json",
    ]
    view = read_state(root)
    assert [record.label for record in view.records] == ["u0", "u1", "u2"]
    assert (view.owner, view.pending, view.running, view.last_error, view.damage) == (None, None, None, None, ())


def test_a_bucket_that_is_not_there(s3: S3Bucket) -> None:
    with pytest.raises(InputError, match="cannot read the state s3://no-such-lake/st: there is no such bucket; "):
        open_state("s3://no-such-lake/st", ME).__enter__()
    assert not is_state("s3://no-such-lake/st")


def test_an_endpoint_that_is_down(s3: S3Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(InputError, match="cannot read the state s3://lake/st: ") as error:
        open_state("s3://lake/st", ME).__enter__()
    assert "\n" not in str(error.value)
    assert not is_state("s3://lake/st")


def test_window_state_that_a_store_refuses_is_not_damage(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    put(root, 1)
    with open_state(root, ME) as state:
        files = state.stage("u0", "s")

    def refuse(*_: object) -> None:
        raise OSError("When reading information for key 'a': AWS Error ACCESS_DENIED during HeadObject operation")

    monkeypatch.setattr(StoreStage, "read", refuse)
    (part,) = files.parts("rows")
    with pytest.raises(InputError, match=r"^cannot read s3://.*/u0/s/rows-00000.parquet: permission denied; ") as error:
        files.read_part(part)
    assert not isinstance(error.value, DamagedError)


def test_a_machine_without_credentials(root: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    with pytest.raises(ConfigError, match="there are no credentials for s3://lake"):
        open_state(root, ME).__enter__()


def test_a_machine_without_the_extra(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wincli.writers.places.objects", None)
    with pytest.raises(ConfigError, match="needs the package obstore") as error:
        open_state(root, ME).__enter__()
    assert error.value.do == "in the folder of wincli, run: pip install '.[cloud]'"


# Laws, over a store that is quick


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> QuickStore:
    store = QuickStore(tmp_path / "store")
    use(store, monkeypatch)
    return store


def check_whole(store: QuickStore, labels: set[str]) -> None:
    """Check that nothing is in the store but the state, whole."""
    with open_state(URI, ME) as state:
        assert {record.label for record in state.records} == labels
        own = {f"{record.label}/.{record.run}/{name}" for record in state.records for name in ("unit.json", PART)}
    assert set(store.names()) == {".wincli-state", ".journal.json", *own}


PART = "s/rows-00000.parquet"


@pytest.mark.parametrize("is_done", [True, False])
@pytest.mark.parametrize("old", [None, 1])
def test_killed_at_any_request_of_a_unit(store: QuickStore, tmp_path: Path, old: int | None, is_done: bool) -> None:
    seen = set()
    for number in range(1, 99):
        store.clear()
        out = tmp_path / f"out-{number}"
        if old is not None:
            put(URI, old, [out])
        with killed_at(store, number, is_done=is_done) as died:
            put(URI, 2, [out], owner=DEAD)
        if not died:
            break
        found = value_in(URI)
        assert found in {old, 2}
        assert value_of(out) == found
        check_whole(store, set() if found is None else {"u0"})
        seen.add(found)
    assert 8 < number < 98
    assert seen == {old, 2}


@pytest.mark.parametrize("is_done", [True, False])
def test_killed_at_any_request_of_a_recovery(store: QuickStore, is_done: bool) -> None:
    for number in range(1, 99):
        store.clear()
        put(URI, 1)
        with killed_at(store, 7, is_done=True):  # the journal is there, and nothing is in place
            put(URI, 2, owner=DEAD)
        assert read_state(URI).pending == "u0"
        with killed_at(store, number, is_done=is_done) as died, open_state(URI, DEAD):
            pass
        if not died:
            break
        assert value_in(URI) == 2
        check_whole(store, {"u0"})
    assert 4 < number < 98


@pytest.mark.parametrize("is_done", [True, False])
@pytest.mark.parametrize("later", [0, 1])
def test_who_is_paused_and_loses_the_state_changes_nothing(
    store: QuickStore, monkeypatch: pytest.MonkeyPatch, later: int, is_done: bool
) -> None:
    """A run is paused at a request, before or after its effect; another takes the state, runs a unit, and ends."""
    monkeypatch.setattr(conditional, "SECONDS", -1.0)
    told = set()
    for number in range(2, 99):  # before the first it has not read anything, and so runs after the other
        store.clear()
        put(URI, 1)
        paused, go_on, errors = threading.Event(), threading.Event(), list[Exception]()

        def pause(now: int, at: int = number, here: threading.Event = paused, go: threading.Event = go_on) -> None:
            if now == at:
                here.set()
                go.wait()

        def first(errors: list[Exception] = errors, paused: threading.Event = paused) -> None:
            try:
                put(URI, 2)
            except OutputError as error:
                errors.append(error)
            paused.set()

        store.changes, store.before, store.after = 0, *((never, pause) if is_done else (pause, never))
        run = threading.Thread(target=first)
        run.start()
        paused.wait()
        is_over = store.changes < number
        store.before = store.after = never
        before = read_state(URI).records
        put(URI, 3, ordinal=later, owner=OTHER)
        after = read_state(URI).records
        go_on.set()
        run.join()
        assert read_state(URI).records == after
        told.add((bool(errors), len(before)))
        check_whole(store, {"u0", f"u{later}"})
        assert value_in(URI, f"u{later}") == 3
        assert later == 0 or value_in(URI) in {1, 2}
        if is_over:
            break
    assert 8 < number < 98
    assert (True, 1) in told


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (InputError("the input is gone"), InputError("the input is gone")),
        (ConfigError("the output already holds a result"), OutputError("another run")),  # it met that of the other
    ],
)
def test_a_run_that_fails_and_has_lost_the_state_says_what_stopped_it(
    store: QuickStore, monkeypatch: pytest.MonkeyPatch, error: WincliError, told: WincliError
) -> None:
    monkeypatch.setattr(conditional, "SECONDS", -1.0)

    def fail() -> None:
        with open_state(URI, ME) as state, state.begin("u0", 0, []):
            put(URI, 3, owner=OTHER)
            raise error

    with pytest.raises(type(told), match=told.what):
        fail()
    assert value_in(URI) == 3


def test_a_store_that_ignores_conditions_is_refused(store: QuickStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_storage, "refuses_stale_puts", lambda *_: False)
    with pytest.raises(ConfigError, match="ignores the conditions of puts, so two runs could take it at once; nothing"):
        put(URI, 1)
    assert store.names() == []


def test_one_run_at_a_time(store: QuickStore) -> None:
    with open_state(URI, ME):
        busy = pytest.raises(OutputError, match=r"another run is writing to the state s3://quick/state \(process")
        with busy, open_state(URI, OTHER):
            pass
        assert read_state(URI).owner == ME
    assert read_state(URI).owner is None
    assert state_without_lock(URI).records == ()


def test_a_head_that_was_deleted_is_made_from_the_newest_runs(store: QuickStore) -> None:
    put(URI, 1)
    put(URI, 2, ordinal=1)
    (store.folder / ".journal.json").unlink()
    assert [record.label for record in read_state(URI).records] == ["u0", "u1"]
    assert (value_in(URI), value_in(URI, "u1")) == (1, 2)
    check_whole(store, {"u0", "u1"})


@pytest.mark.parametrize("content", ["", "{", '{"fence": "1"}', "null"])
def test_a_damaged_head_is_an_error(store: QuickStore, content: str) -> None:
    put(URI, 1)
    (store.folder / ".journal.json").write_text(content)
    for look in (lambda: read_state(URI), lambda: open_state(URI, ME).__enter__()):
        with pytest.raises(DamagedError, match=r"^s3://quick/state/.journal.json is damaged: it is not what was"):
            look()


def test_a_record_that_is_gone_is_damage_and_a_whole_unit_is_not_done(store: QuickStore) -> None:
    put(URI, 1)
    put(URI, 2, ordinal=1)
    (record,) = (store.folder / "u1").glob(".*/unit.json")
    record.unlink()
    with pytest.raises(DamagedError, match=r"u1/\..*/unit.json is gone; restore it, or delete that whole unit"):
        read_state(URI)
    (part,) = (store.folder / "u1").rglob("*.parquet")
    part.unlink()
    assert [record.label for record in read_state(URI).records] == ["u0"]


def test_window_state_that_is_gone_is_damage(store: QuickStore) -> None:
    put(URI, 1)
    (part,) = (store.folder / "u0").rglob("*.parquet")
    part.unlink()
    assert read_state(URI).damage == (
        "s3://quick/state/u0/s/rows-00000.parquet is damaged: it is gone; restore it; a unit of a range may be run "
        "again with --redo, the last plain run with --mode overwrite after wincli state forget",
    )


def test_a_state_that_was_copied_from_a_local_folder_is_refused(store: QuickStore, tmp_path: Path) -> None:
    put(str(tmp_path / "local"), 1)
    shutil.copytree(tmp_path / "local", store.folder)
    with pytest.raises(ConfigError, match="has the units of a state that was in a local folder; copy it"):
        read_state(URI)


@pytest.mark.parametrize("is_done", [True, False])
def test_a_store_that_does_not_answer_at_the_journal(store: QuickStore, is_done: bool) -> None:
    """Whether the journal is there decides, though the run could not know."""
    put(URI, 1)

    def fail(now: int) -> None:
        if now >= 6:
            store.is_down = True
            raise OSError("the store does not answer")

    store.changes, store.before, store.after = 0, *((never, fail) if is_done else (fail, never))
    with pytest.raises(OutputError, match="the store does not answer"):
        put(URI, 2, owner=DEAD)
    store.before, store.after, store.is_down = never, never, False
    with open_state(URI, ME) as state:
        assert state_value(state) == (2 if is_done else 1)
    check_whole(store, {"u0"})


def test_units_are_copied_to_a_local_folder(store: QuickStore, tmp_path: Path) -> None:
    for number in range(3):
        put(URI, 7 + number, ordinal=number, keep=2)
    read_state(URI).storage.copy_to(tmp_path / "copy")
    with open_state(str(tmp_path / "copy"), ME) as state:
        assert [state_value(state, f"u{number}") for number in range(3)] == [None, 8, 9]
        assert state.records == read_state(URI).records


def requests_of(server: S3Server, parts: int, root: str) -> tuple[int, int]:
    """How many requests opening a state of one unit takes, and how many a unit with so many parts."""
    server.requests.clear()
    with open_state(root, ME) as state:
        opening = len(server.requests)
        with state.begin("u1", 1, []) as staging:
            record = record_of(staging, 2)
            files = staging.stage("s")
            more = tuple(files.write_rows(number, pa.table({"n": [2]})) for number in range(1, parts))
            (stage,) = record.stages
            commit_together(staging, replace(record, stages=(replace(stage, parts=(*stage.parts, *more)),)), [], 10)
        return opening, len(server.requests) - opening


def test_a_unit_takes_a_request_for_each_file_and_some_more(root: str, s3_server: S3Server) -> None:
    put(root, 1)
    opening, few = requests_of(s3_server, 2, root)
    _, many = requests_of(s3_server, 22, root)
    assert opening <= 20
    assert few <= 2 + 10
    assert many - few == 20 + 1  # which deletes the files of the former run


# Requests that fail at random, before they have an effect or after it: all is old or new in the end
#
# What `scripts/fault_runs` does to whole runs over a server, this does to commits alone, over a store that is quick: a
# request that fails here is one of which no retry says what has become of it.


OUTS = ("s://store/a", "s://store/b")
RATES = (0.02, 0.05, 0.1)


@dataclass
class Line:
    """What is between runs and their stores, all of them. ``rate``: the share of requests that fail."""

    chance: random.Random
    rate: float = 0.0
    faults: int = 0

    def may_fail(self, _: int = 0) -> None:
        if self.chance.random() < self.rate:
            self.faults += 1
            raise OSError("the store does not answer")


@dataclass
class FaultyStore(QuickStore):
    """A store at the end of a line."""

    line: Line = field(default_factory=lambda: Line(random.Random()))

    def __post_init__(self) -> None:
        self.before = self.after = self.line.may_fail

    def get(self, name: str) -> Object | None:
        self.line.may_fail()
        return super().get(name)

    def list(self, beginning: str = "") -> dict[str, int]:
        self.line.may_fail()
        return super().list(beginning)


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Line:
    line = Line(random.Random(39))
    (tmp_path / "store").mkdir()
    use_for_outputs(tmp_path, "s://", monkeypatch)
    use(FaultyStore(tmp_path / "state", line=line), monkeypatch)
    monkeypatch.setattr(
        store_objects, "open_store", lambda uri: FaultyStore(tmp_path / uri.removeprefix("s://"), line=line)
    )
    return line


def run(value: int, label: str | None, owner: Owner) -> None:
    """Write a number to both outputs and, if it is one of a unit, to the state."""
    if label is not None:
        put(URI, value, OUTS, int(label[1:]), 1, owner)
        return
    with ExitStack() as stack:
        opened = [stack.enter_context(open_output(out, "overwrite", [], owner)) for out in OUTS]
        for output in opened:
            output.begin()
        commit_all([result(output, value) for output in opened])


def values(folder: Path) -> list[int | None]:
    """The numbers that the outputs say; a part that is missing, or of another number, fails."""
    return [value_of(folder / "store" / name) for name in "ab"]


def check_all_whole(folder: Path, label: str | None, value: int) -> None:
    """Check that all is of one run, and that nothing else is there."""
    assert values(folder) == [value, value]
    found = {str(path.relative_to(folder / "store")) for path in (folder / "store").rglob("*") if path.is_file()}
    parts = {name for name in found if "/part-" in name}
    marks = {f"{out}/{name}" for out in "ab" for name in ("_SUCCESS", "_wincli/manifest.json")}
    assert (len(parts), found - parts) == (2, marks)
    if label is None:
        return
    with open_state(URI, ME) as state:
        assert state_value(state, label) == value
        own = {f"{record.label}/.{record.run}/unit.json" for record in state.records}
        own |= {f"{record.label}/.{record.run}/s/rows-00000.parquet" for record in state.records[-1:]}
    names = {str(path.relative_to(folder / "state")) for path in (folder / "state").rglob("*") if path.is_file()}
    assert names == {".wincli-state", ".journal.json", *own}


@pytest.mark.parametrize("which", ["a unit again", "the next unit", "without a state"])
def test_faults_at_random_requests_leave_all_old_or_all_new(tmp_path: Path, line: Line, which: str) -> None:
    trials, ended, told = 0, set(), list[WincliError]()
    while line.faults < 50:
        label, step = None if which == "without a state" else "u0", int(which == "the next unit")
        line.rate = 0.0
        run(1, label and f"u{trials * step}", ME)
        trials += 1
        label = label and f"u{trials * step}"
        line.rate, is_done, faults = line.chance.choice(RATES), False, line.faults
        for _ in range(line.chance.choice((1, 1, 2, 3))):
            try:
                run(2, label, DEAD)
                is_done = True
            except WincliError as error:
                told.append(error)
        line.rate = 0.0
        if label is None:
            assert set(values(tmp_path)) <= {1, 2}
        else:
            with open_state(URI, ME) as state:
                now = 2 if state.record(label) is not None and state_value(state, label) == 2 else 1
            assert values(tmp_path) == [now, now]
        assert not is_done or values(tmp_path) == [2, 2]
        ended.add((is_done, line.faults > faults))
        run(3, label, ME)
        check_all_whole(tmp_path, label, 3)
    assert trials > 5
    assert (False, True) in ended
    assert not any(isinstance(error, DamagedError) or "\n" in str(error) for error in told)
