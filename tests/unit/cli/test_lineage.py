"""``--lineage``: the events of runs, of units and of failures, in a file and at a server on the loopback."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.in_process import wincli_here
from support.processes import Ran, manifest
from wincli.cli.console.messages import Messages, Stopped
from wincli.cli.monitoring import lineage_transport
from wincli.cli.monitoring.lineage import DatasetName, Lineage, RunName, name_of, run_above
from wincli.cli.monitoring.lineage_transport import Outbox
from wincli.cli.run.context import observed
from wincli.cli.run.request import parse_job

RUN_ID = "01234567-89ab-7def-8123-456789abcdef"
JOB = ("-w", "count(10)", "-k", "user", "--order-by", "ts")
Event = dict[str, Any]


@pytest.fixture(autouse=True)
def nothing_around(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No variables and no configuration of OpenLineage but those of a test, and a temporary folder of its own."""
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("URL", "CONFIG", "NAMESPACE", "PARENT_ID", "ROOT_PARENT_ID", "API_KEY", "DISABLED"):
        monkeypatch.delenv(f"OPENLINEAGE_{name}", raising=False)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Two days of 40 rows."""
    for night in (1, 2):
        folder = tmp_path / "log" / f"dt=2026-11-0{night}"
        folder.mkdir(parents=True)
        pq.write_table(
            pa.table({"ts": [100 * night + n for n in range(40)], "user": ["a", "b"] * 20}), folder / "a.parquet"
        )
    return tmp_path


def run(folder: Path, *more: str, paths: tuple[str, ...] = ("log", "out"), to: str = "l.jsonl") -> Ran:
    return wincli_here("run", *JOB, "--lineage", to, *more, *paths, cwd=folder)


def events(folder: Path) -> list[Event]:
    return [json.loads(line) for line in (folder / "l.jsonl").read_text().splitlines()]


def states(found: list[Event]) -> list[str]:
    return [f"{each['eventType']} {each['job']['name']}" for each in found]


def parent(event: Event) -> str:
    return str(event["run"]["facets"]["parent"]["run"]["runId"])


# Events


def test_a_run_starts_and_completes_with_what_it_read_and_wrote(log: Path) -> None:
    assert run(log, "--expect", "rows_in > 0").code == 0
    start, complete = events(log)
    assert states([start, complete]) == ["START out", "COMPLETE out"]
    assert start["run"]["runId"] == complete["run"]["runId"]
    assert start["eventTime"] < complete["eventTime"]
    assert "parent" not in complete["run"]["facets"]
    assert complete["job"]["namespace"] == "wincli"
    (read,), (written,) = complete["inputs"], complete["outputs"]
    assert (read["namespace"], read["name"]) == ("file", str(log / "log"))
    assert (written["namespace"], written["name"]) == ("file", str(log / "out"))
    assert [(each["name"], each["namespace"]) for each in (*start["inputs"], *start["outputs"])] == [
        (read["name"], "file"),
        (written["name"], "file"),
    ]
    told = manifest(log / "out")
    size = sum(file["size"] for file in told["inputs"])
    statistics = {key: read["inputFacets"]["inputStatistics"][key] for key in ("rowCount", "size", "fileCount")}
    assert statistics == {"rowCount": 80, "size": size, "fileCount": 2}
    statistics = written["outputFacets"]["outputStatistics"]
    assert (statistics["rowCount"], statistics["fileCount"]) == (told["rows_out"], len(told["parts"]))
    assert [each["name"] for each in written["facets"]["schema"]["fields"]] == pq.read_table(log / "out").column_names
    assert [each["name"] for each in read["facets"]["schema"]["fields"]] == ["ts", "user", "dt"]
    (checked,) = written["facets"]["dataQualityAssertions"]["assertions"]
    assert (checked["assertion"], checked["success"]) == ("rows_in > 0", True)


def test_units_are_runs_below_the_run_of_the_command(log: Path) -> None:
    assert run(log, "--start", "2026-11-01", "--end", "2026-11-04", "--state", "st").code == 0
    found = events(log)
    assert states(found) == ["START out", *["START out.unit", "COMPLETE out.unit"] * 2, "COMPLETE out"]
    above, first, _, second, last, _ = found
    assert {parent(each) for each in found[1:5]} == {above["run"]["runId"]}
    assert first["run"]["runId"] != second["run"]["runId"]
    times = [each["run"]["facets"]["nominalTime"]["nominalStartTime"] for each in (first, second)]
    assert times == ["2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z"]
    assert [each["name"] for each in (*last["inputs"], *last["outputs"])] == [str(log / "log"), str(log / "out")]
    assert last["inputs"][0]["inputFacets"]["inputStatistics"]["rowCount"] == 40


def test_a_run_with_nothing_to_do_completes_without_datasets_and_one_that_cannot_begin_fails(log: Path) -> None:
    assert [run(log).code, run(log).code, run(log, paths=("nowhere", "out")).code] == [0, 0, 3]
    *_, complete, start, fail = events(log)
    assert (complete["eventType"], complete["inputs"], complete["outputs"]) == ("COMPLETE", [], [])
    assert states([start, fail]) == ["START out", "FAIL out"]


def test_a_unit_that_fails_fails_the_run_above_it_and_both_say_why(log: Path) -> None:
    pq.write_table(pa.table({"ts": ["x"], "user": ["a"]}), log / "log" / "dt=2026-11-02" / "a.parquet")
    assert run(log, "--start", "2026-11-01", "--end", "2026-11-03", "-a", "sum(ts)").code == 2
    found = events(log)
    assert states(found)[-3:] == ["START out.unit", "FAIL out.unit", "FAIL out"]
    unit, above = (each["run"]["facets"]["errorMessage"]["message"] for each in found[-2:])
    assert "sum" in unit
    assert above == f"2026-11-02: {unit}"


def test_a_run_that_a_signal_stops_is_aborted() -> None:
    sent: list[Any] = []
    job = parse_job({"window": "count(1)", "paths": ("in", "out")})
    Lineage(job, Messages(-1), Outbox("l.jsonl", sent.append), {}).close(Stopped(143))
    assert sent[0].eventType.value == "ABORT"


def test_an_event_that_cannot_be_made_stops_no_run(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wincli.cli.monitoring.lineage.lineage_of", {}.__getitem__)
    ran = run(log, "--start", "2026-11-01", "--end", "2026-11-03")
    assert ran.code == 0
    assert ran.err.count("2 of 6 OpenLineage events were not sent to l.jsonl") == 1
    assert states(events(log)) == ["START out", *["START out.unit"] * 2, "COMPLETE out"]
    assert run(log, paths=("log", "out2"), to="l2.jsonl").code == 0


def test_an_error_after_the_commit_leaves_the_run_committed() -> None:
    job = parse_job({"window": "count(1)", "paths": ("in", "out")})
    for is_committed in (True, False):
        seen: Any = mock.Mock()
        with pytest.raises(Stopped), observed((seen,), job, "") as committed:  # noqa: PT012 - it is what is observed
            if is_committed:
                committed(seen.staged)
            raise Stopped(143)
        assert [name for name, _, _ in seen.method_calls] == ["begin", "commit" if is_committed else "fail"]


def test_stages_with_outputs_and_enrich_tables_are_datasets(log: Path) -> None:
    (log / "names.csv").write_text("user,name\na,Ann\nb,Ben\n")
    (log / "job.yaml").write_text(
        "enrich: ['n=names.csv on user']\n"
        "stages:\n"
        "- {name: one, window: count(4), key: user, order_by: ts, agg: ['who=max(n_name)'], output: own}\n"
        "- {name: two, window: count(2), agg: ['best=max(who)']}\n"
    )
    ran = wincli_here("run", "job.yaml", "log", "out", "--lineage", "l.jsonl", cwd=log)
    assert ran.code == 0, ran.err
    complete = events(log)[-1]
    assert [Path(each["name"]).name for each in complete["inputs"]] == ["log", "names.csv"]
    assert [Path(each["name"]).name for each in complete["outputs"]] == ["own", "out"]
    for output, column in zip(complete["outputs"], ("who", "best"), strict=True):
        lineage = output["facets"]["columnLineage"]
        (origin,) = lineage["fields"][column]["inputFields"]
        assert (origin["name"], origin["field"]) == (str(log / "names.csv"), "name")
        joins = {
            (Path(each["name"]).name, each["field"])
            for each in lineage["dataset"]
            if any(one["subtype"] == "JOIN" for one in each["transformations"])
        }
        assert joins == {("log", "user"), ("names.csv", "user")}


@pytest.mark.parametrize("more", [("--agg", "best=max(q_bid)"), ("--agg", "best=max(q_bid - x)"), ()])
def test_both_sides_of_a_join_are_inputs_with_their_own_columns_and_files(log: Path, more: tuple[str, ...]) -> None:
    (log / "quotes.csv").write_text("who,at,bid\na,1,5\nb,2,6\n")
    (log / "left.csv").write_text("user,ts,x\na,2,1\nb,3,1\nb,4,1\n")
    words = ("--join", "q=quotes.csv on user=who by ts=at left", "--window", "around(2, 0)", "--match", "q_bid > x")
    ran = wincli_here("run", *words, *more, "--plain", "left.csv", "out", "--lineage", "l.jsonl", cwd=log)
    assert ran.code == 0, ran.err
    complete = events(log)[-1]
    found = {Path(each["name"]).name: each for each in complete["inputs"]}
    columns = {name: [field["name"] for field in each["facets"]["schema"]["fields"]] for name, each in found.items()}
    assert columns == {"left.csv": ["user", "ts", "x"], "quotes.csv": ["who", "at", "bid"]}
    assert [each["inputFacets"]["inputStatistics"]["fileCount"] for each in found.values()] == [1, 1]
    assert complete["job"]["facets"]["documentation"]["description"].endswith(
        'around(2, 0) --join "q=quotes.csv on user=who by ts=at left" --match "q_bid > x"'
    )
    lineage = complete["outputs"][0]["facets"]["columnLineage"]

    def uses(fields: list[Any]) -> dict[tuple[str, str], set[str]]:
        return {
            (Path(each["name"]).name, each["field"]): {one["subtype"] for one in each["transformations"]}
            for each in fields
        }

    of = {name: uses(each["inputFields"]) for name, each in lineage["fields"].items()}
    assert of["x"] == {("left.csv", "x"): {"IDENTITY"}}
    assert of["user"] == {("left.csv", "user"): {"IDENTITY"}, ("quotes.csv", "who"): {"IDENTITY"}}
    if more:
        left = {("left.csv", "x"): {"AGGREGATION"}} if "x)" in more[1] else {}
        assert of["best"] == {("quotes.csv", "bid"): {"AGGREGATION"}, **left}
    else:
        assert of["q_bid"] == {("quotes.csv", "bid"): {"IDENTITY"}}
    rows = uses(lineage["dataset"])
    assert rows == {
        ("left.csv", "user"): {"GROUP_BY", "JOIN"},
        ("quotes.csv", "who"): {"GROUP_BY", "JOIN"},
        ("left.csv", "ts"): {"SORT", "WINDOW"},
        ("quotes.csv", "at"): {"SORT", "WINDOW"},
        ("left.csv", "x"): {"JOIN"},
        ("quotes.csv", "bid"): {"JOIN"},
    }


def test_a_join_of_a_later_stage_is_an_input(log: Path) -> None:
    (log / "quotes.csv").write_text("user,ts,bid\na,1,5\nb,2,6\n")
    (log / "job.yaml").write_text(
        "stages:\n"
        "- {name: one, window: count(1), key: user, order_by: ts, agg: ['t=max(ts)']}\n"
        "- {name: two, join: q=quotes.csv on user by t=ts, window: at(0) within 9}\n"
    )
    ran = wincli_here("run", "job.yaml", "log", "out", "--lineage", "l.jsonl", cwd=log)
    assert ran.code == 0, ran.err
    complete = events(log)[-1]
    assert [Path(each["name"]).name for each in complete["inputs"]] == ["log", "quotes.csv"]
    fields = complete["outputs"][0]["facets"]["columnLineage"]["fields"]
    (origin,) = fields["q_bid"]["inputFields"]
    assert (Path(origin["name"]).name, origin["field"]) == ("quotes.csv", "bid")
    assert fields["q_offset"]["inputFields"] == []


# Parents and names


def test_the_runs_above_come_from_the_environment(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENLINEAGE_PARENT_ID", f"airflow/nightly.sessions/{RUN_ID}")
    monkeypatch.setenv("OPENLINEAGE_ROOT_PARENT_ID", f"airflow/nightly/{RUN_ID[::-1]}")
    monkeypatch.setenv("OPENLINEAGE_NAMESPACE", "prod")
    assert run(log, "--start", "2026-11-01", "--end", "2026-11-02").code == 0
    command, unit = events(log)[:2]
    above = command["run"]["facets"]["parent"]
    assert (above["job"]["namespace"], above["job"]["name"], parent(command)) == ("airflow", "nightly.sessions", RUN_ID)
    assert parent(unit) == command["run"]["runId"]
    for each in (command, unit):
        root = each["run"]["facets"]["parent"]["root"]
        assert (root["job"]["name"], root["run"]["runId"]) == ("nightly", RUN_ID[::-1])
    assert command["job"]["namespace"] == "prod"


def test_the_form_of_parents() -> None:
    found = {"OPENLINEAGE_PARENT_ID": f"https://x/y/a.b/{RUN_ID}", "OPENLINEAGE_ROOT_PARENT_ID": "a/b/c"}
    assert run_above("OPENLINEAGE_PARENT_ID", found) == (RunName("https://x/y", "a.b", RUN_ID), None)
    note = "OPENLINEAGE_ROOT_PARENT_ID is not of the form namespace/name/run_id, with a UUID as run_id, and is not used"
    assert run_above("OPENLINEAGE_ROOT_PARENT_ID", found) == (None, note)
    assert run_above("OPENLINEAGE_PARENT_ID", {}) == (None, None)


@pytest.mark.parametrize(
    ("path", "namespace", "name"),
    [
        ("/a/b", "file", "/a/b"),
        ("/a/b/*.csv", "file", "/a/b"),
        ("/a/day={date:%Y}/x", "file", "/a"),
        ("s3a://k/a/b/", "s3://k", "a/b"),
        ("s3://k:secret@b/a", "s3://***@b", "a"),
        ("gs://b", "gs://b", "/"),
        ("abfs://c@acc.dfs.core.windows.net/x", "abfss://c@acc.dfs.core.windows.net", "x"),
        ("iceberg://prod/ns.table", "iceberg://prod", "ns.table"),
        ("iceberg://prod/ns.table/day={date}", "iceberg://prod", "ns.table"),
        ("delta+/a/b/day=1", "file", "/a/b"),
        ("delta+s3://k/a/at=1/day={date}", "s3://k", "a"),
    ],
)
def test_names_of_datasets(path: str, namespace: str, name: str) -> None:
    assert name_of(path) == DatasetName(namespace, name)


# Where events go


class Server(ThreadingHTTPServer):
    """Takes events; answers with ``status``, and a ``location`` where there is one, or begins to and never ends."""

    status = 201
    location: str | None = None
    slow_until: threading.Event | None = None
    daemon_threads = True

    def __init__(self) -> None:
        self.taken: list[tuple[str, str | None, Event]] = []
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        body = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
        self.server.taken.append((self.path, self.headers.get("Authorization"), json.loads(body)))
        self.send_response(self.server.status)
        if self.server.slow_until is not None:
            while not self.server.slow_until.wait(0.02):  # so no timeout of a client of HTTP runs out
                self.wfile.write(b"x")
        if self.server.location:
            self.send_header("Location", self.server.location)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.shutdown()
    made.server_close()


def test_events_go_to_a_server_with_the_key_of_the_environment(
    log: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "open-sesame")
    assert run(log, to=server.url).code == 0
    assert run(log, "--mode", "overwrite", to=f"{server.url}/own/path").code == 0
    assert [path for path, _, _ in server.taken] == ["/api/v1/lineage"] * 2 + ["/own/path"] * 2
    assert {key for _, key, _ in server.taken} == {"Bearer open-sesame"}
    assert states([event for _, _, event in server.taken]) == ["START out", "COMPLETE out"] * 2
    assert "open-sesame" not in (log / "out" / "_wincli" / "manifest.json").read_text()


def test_env_is_what_the_variables_of_openlineage_say(
    log: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = run(log, to="env")
    lacks = "--lineage env: there is no OPENLINEAGE_URL and no openlineage.yml"
    do = "set OPENLINEAGE_URL, or name a file or a URL"
    assert (missing.code, missing.err) == (2, f"wincli: error: {lacks}; {do}\n")
    monkeypatch.setenv("OPENLINEAGE_URL", server.url)
    assert run(log, to="env").code == 0
    assert len(server.taken) == 2
    assert wincli_here("run", *JOB, "log", "out2", cwd=log).code == 0
    assert len(server.taken) == 2


ANSWERS = {
    401: "401 Client Error", 300: "300", 301: "301: it redirects to http://elsewhere/", 302: "302: it",
    303: "303: it", 304: "304", 0: "Connection refused", -1: "it gives no answer",
}  # fmt: skip
"""What is said where a server answers with a status; 0: there is none, -1: its answer never ends."""


@pytest.mark.parametrize("status", ANSWERS)
def test_an_answer_that_is_no_delivery_is_one_note_costs_patience_once_and_stops_no_run(
    status: int, log: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.status, server.location = status, "http://elsewhere/" if status < 400 else None
    if status == 0:
        server.shutdown()
        server.server_close()
    if status == -1:
        monkeypatch.setattr(lineage_transport, "_PATIENCE", 0.2)
        server.slow_until = threading.Event()
    ran = run(log, "--start", "2026-11-01", "--end", "2026-11-03", to=server.url)
    assert (ran.code, len(server.taken)) == (0, status != 0)
    if server.slow_until is not None:
        server.slow_until.set()
    (note,) = [line for line in ran.notes if "OpenLineage" in line]
    assert note.startswith(f"6 of 6 OpenLineage events were not sent to {server.url}: {ANSWERS[status]}")
    kept = [json.loads(line) for line in Path(note.rpartition("; they are kept in ")[2]).read_text().splitlines()]
    assert states(kept) == ["START out", *["START out.unit", "COMPLETE out.unit"] * 2, "COMPLETE out"]


def test_a_missing_package_is_named(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lineage_transport, "find_spec", lambda name: None)
    ran = run(log)
    needs = "--lineage needs openlineage-python, which is not installed"
    do = "in the folder of wincli, run: pip install '.[lineage]'"
    assert (ran.code, ran.err) == (2, f"wincli: error: {needs}; {do}\n")


def test_a_unit_that_runs_again_for_late_rows_has_events_of_its_own(log: Path) -> None:
    for name, ts in (("one", range(100, 140)), ("two", range(130, 170))):
        pq.write_table(pa.table({"ts": list(ts), "user": ["a", "b"] * 20}), log / f"{name}.parquet")
        flags = ("--state", "st", "--late", "redo", "--metrics-file", "m.prom")
        assert run(log, *flags, paths=(f"{name}.parquet", f"out/{name}")).code == 0
    found = [each for each in events(log) if each["job"]["name"].endswith("two.unit")]
    assert [each["eventType"] for each in found] == ["START", "COMPLETE"] * 2
    outputs = [Path(each["outputs"][0]["name"]).name for each in found]
    assert outputs == ["one", "one", "two", "two"]
    assert [Path(each["inputs"][0]["name"]).stem for each in found] == outputs
    assert 'wincli_units{output="out/two",result="done"} 2\n' in (log / "m.prom").read_text()


def test_a_redirect_that_keeps_the_post_is_followed(log: Path, server: Server) -> None:
    near = Server()
    near.status, near.location = 308, f"{server.url}/api/v1/lineage"
    ran = run(log, to=near.url)
    near.shutdown()
    near.server_close()
    assert "not sent" not in ran.err
    assert [event["eventType"] for _, _, event in server.taken] == ["START", "COMPLETE"]


def test_answers_that_take_long_use_up_the_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    class Client:
        def emit(self, _: object) -> None:
            now[0] += 4

    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    emitter = lineage_transport._Emitter(Client(), 10.0)
    for _ in range(3):
        emitter.send(None)
    with pytest.raises(TimeoutError, match="too slowly"):
        emitter.send(None)


def test_a_log_of_the_configuration_keeps_to_the_rule_of_files(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = log / "log" / "dt=2026-11-01" / "a.parquet"
    before = table.read_bytes()
    transport = {"type": "file", "log_file_path": str(table), "append": True}
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT", json.dumps(transport))
    ran = run(log, to="env")
    assert (ran.code, table.read_bytes()) == (2, before)
    assert "exists and is not an event log of wincli" in ran.err


def test_no_secret_of_the_target_or_of_a_path_is_in_a_message_a_record_or_an_event(log: Path, server: Server) -> None:
    server.status = 500
    there = server.url.replace("http://", "http://someone:open-sesame@")
    ran = run(log, "--metrics-file", "m.prom", to=f"{there}/x?token=open-sesame")
    assert ran.code == 0
    assert "2 of 2 OpenLineage events were not sent to http://***@127.0.0.1" in ran.err
    told = (log / "out" / "_wincli" / "manifest.json").read_text() + (log / "m.prom").read_text() + ran.err
    assert "sesame" not in told
    assert {key for _, key, _ in server.taken} != {None}
    assert "sesame" not in json.dumps([event for _, _, event in server.taken])
