"""Every form of a secret against every writer: no byte of it is in what commands say or leave behind."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from urllib.parse import quote

import pytest

from support.day_results import records
from support.in_process import done, wincli_here
from support.processes import Ran, write
from wincli.cli.run.fingerprint import same_job
from wincli.windowing.support import file_systems

SECRET = "hunter/2SECRET"
FORMS = (
    "hunter/2SECRET",
    "2SECRET",
    quote(SECRET, safe=""),
    b64encode(SECRET.encode()).decode().rstrip("="),
    "aHVudGVy",
)
WINDOW = ("-w", "gap(ts, 30m)", "-k", "user")
Q = quote(SECRET, safe="")
ADDRESSES = (
    "s3:/KEYID:{}@bucket/x",
    "s3:KEYID:{}@bucket/x",
    "s3a:KEYID:{}/x",
    "delta+s3:/KEYID:{}@bucket/x",
    "//KEYID:{}@bucket/x",
    "s3://KEYID:{}@bucket/x",
    "S3A://KEYID:{}@bucket/x#frag",
    "s3://KEYID:{}@/x",
    "s3:///KEYID:{}@bucket/x",
    "s3://bucket/user:{}@host/x",
    "s3://bucket/user%3A{}%40host/x",
    "s3://bucket/x?token={}",
    "s3://bucket/x?foo={}",
    "s3://bucket/x?{}",
    "s3://bucket/x?region=r&endpoint_override=http%3A%2F%2Fu%3A{}%40h",
    "s3://bucket/x#token={}",
    "s3://bucket/x#{}",
    "s3://bucket/x;token={}",
    "s3://bucket/x%3Ftoken%3D{}",
    "s3://bucket/x?X-Amz-Signature={}&X-Amz-Security-Token={}&X-Amz-Expires=60",
    "abfss://box@account/x?sv=1&se=2026-11-01&sig={}",
    "foo://u:{}@h/x?sig={}",
    "https://h/p/user:{}@x?code={}",
    "iceberg://cat/ns.table?token={}",
    "iceberg://u:{}@cat/ns.table",
    "iceberg+https://u:{}@h/ns.table?credential={}",
    "jdbc:postgresql://h/db?user=u&password={}",
    "jdbc:oracle:thin:u/{}@h",
)
SETTINGS = {
    "spark.executorEnv.PGPASSWORD": SECRET,
    "spark.executorEnv.PGUSER": SECRET,
    "spark.executorEnv.AWS_SESSION_TOKEN": SECRET,
    "spark.hadoop.fs.azure.sas.box.account": SECRET,
    "spark.hadoop.fs.azure.account.key.a.net": SECRET,
    "spark.hadoop.fs.s3a.some.thing": SECRET,
    "spark.sql.catalog.c.credential": f"id:{SECRET}",
    "spark.sql.catalog.c.uri": f"https://u:{SECRET}@h/?warehouse={SECRET}",
    "spark.driver.extraJavaOptions": f"-Xss4m -Da.b={SECRET} -Dx.password='{SECRET}'",
    "spark.jars.repositories": f"https://u:{SECRET}@h/",
}


@pytest.fixture(autouse=True)
def no_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """No store answers, and what its library says has all that it was given."""

    def refuse(address: file_systems.StoreAddress, *_: object) -> None:
        given = f"{address.user}:{address.password}@{address.bucket}/{address.path}?{dict(address.options)}"
        raise OSError(f"cannot reach {given}: Authorization: Basic {b64encode(given.encode()).decode()}")

    for name in ("_s3", "_abfs"):
        monkeypatch.setattr(file_systems, name, refuse)
    for name in ("AWS_SECRET_ACCESS_KEY", "OPENLINEAGE_API_KEY", "SOME_TOKEN"):
        monkeypatch.setenv(name, SECRET)


def check(ran: list[Ran], folder: Path) -> None:
    """Check that no form of the secret is in what was said, nor in a name or the content of a file."""
    said = "".join(each.out + each.err for each in ran)
    left = b"".join(str(path).encode() + (path.read_bytes() if path.is_file() else b"") for path in folder.rglob("*"))
    for form in FORMS:
        assert form not in said, [line for line in said.splitlines() if form in line]
        assert form.encode() not in left, [
            path for path in folder.rglob("*") if path.is_file() and form.encode() in path.read_bytes()
        ]


@pytest.mark.parametrize("form", ADDRESSES)
def test_an_address_that_cannot_be_opened_is_told_without_its_secret(tmp_path: Path, form: str) -> None:
    write(tmp_path, a__csv="ts,user\n2026-11-01T00:00:00,a\n2026-11-01T01:00:00,b\n")
    path = form.replace("{}", SECRET if form.count("/") < 3 and "?" not in form and "@" in form else Q)
    turn = ADDRESSES.index(form)
    places = [(path, "out"), ("a.csv", path), ("a.csv", "out2", "--state", path)]
    places += [("a.csv", "out3", "--enrich", f"p='{path}' on user"), ("a.csv", "out5", "--master", path)]
    places += [("a.csv", "out4", "--lineage", path, "--metrics-file", path)]
    commands = [(*_COMMANDS[(turn + at) % len(_COMMANDS)], *WINDOW, *words) for at, words in enumerate(places)]
    commands += [(*words, path) for words in _READERS[turn % 3 :: 3]]
    check([wincli_here(*words, cwd=tmp_path) for words in commands], tmp_path)


_COMMANDS = (("run", "-vv"), ("run", "--log-format", "json", "-vv"), ("plan",), ("plan", "--json"))
"""These take turns, as those that read do: each meets each place, and each address all places."""
_READERS = (
    ("show",),
    ("status",),
    ("status", "--json"),
    ("verify",),
    ("report",),
    ("why", "--window", "1"),
    ("init",),
    ("state", "list"),
    ("diff", "a.csv"),
    ("doctor", "--no-spark", "--json", "--store"),
    ("doctor", "--no-spark", "--store"),
    ("test",),
)


def test_no_setting_that_might_be_secret_is_written_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, a__csv="ts,user\n2026-11-01T00:00:00,a\n2026-11-01T01:00:00,b\n")
    conf = [word for name, value in SETTINGS.items() for word in ("--spark-conf", f"{name}={value}")]
    conf += ["--spark-conf", "spark.executor.memory=4g", "--spark-conf", "spark.app.name=nightly"]
    conf += ["--master", f"spark://u:{Q}@h:7077", "-vv"]

    outputs = ("--state", "st", "--metrics-file", "m.prom", "--lineage", "events.jsonl")
    ran = [done(tmp_path, "run", *WINDOW, *conf, *outputs, "a.csv", "out")]
    refused = ("--lineage", f"http://u:{Q}@127.0.0.1:1/x?api_key={Q}")
    for words in (
        ("run", *WINDOW, *conf, *refused, "a.csv", "o2"),
        ("run", *WINDOW, *conf, "--log-format", "json", "a.csv", "o3", "--max-rejects", "x"),
        ("plan", *WINDOW, *conf, "--json", "a.csv", "o4"),
        ("run", *WINDOW, "--spark-conf", f"spark.a.b:{SECRET}", "a.csv", "o5"),
        ("status", "st", "--json"),
        ("status", "out"),
        ("state", "list", "st", "--json"),
        ("verify", "out", "--json"),
        ("report", "st", "-o", "st.html"),
        ("report", "out", "-o", "out.html"),
        ("diff", "out", "o2", "--json"),
        ("show", "out"),
        ("why", "out", "--only", "user=a", "--window", "1", "--json"),
    ):
        ran.append(wincli_here(*words, cwd=tmp_path))
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--conf spark.x.y={SECRET} --password {SECRET} pyspark-shell")
    monkeypatch.setenv("_JAVA_OPTIONS", f"-Xmx1g -Da.b={SECRET}")
    monkeypatch.setenv("WINCLI_SPARK_CONF", f"spark.a.b={SECRET}")
    monkeypatch.setenv("WINCLI_LINEAGE", f"https://u:{Q}@h/?k={Q}")
    ran += [wincli_here("doctor", "--no-spark", *more, cwd=tmp_path) for more in ((), ("--json",))]
    check(ran, tmp_path)
    kept = records(tmp_path / "st")["run-000001"]["job"]
    assert kept["spark_conf"] == {
        **dict.fromkeys(SETTINGS, "***"),
        "spark.driver.extraJavaOptions": "-Xss4m -Da.b=*** -Dx.password=***",
        "spark.executor.memory": "4g",
        "spark.app.name": "nightly",
    }
    assert kept["master"] == "spark://***@h:7077"


def test_a_secret_variable_of_the_command_line_is_refused_where_it_would_be_recorded(tmp_path: Path) -> None:
    write(tmp_path, a__csv="ts,user\n2026-11-01T00:00:00,a\n")
    job = "window: gap(ts, 30m)\nkey: user\ninput: a.csv\noutput: out\nwhere: user != '${API_TOKEN}'\n"
    (tmp_path / "job.yaml").write_text(job)
    ran = [
        done(tmp_path, command, "job.yaml", "--var", f"API_TOKEN{sign}{SECRET}", code=2)
        for command, sign in (("run", "="), ("plan", "="), ("run", ":"))
    ]
    assert "names ${API_TOKEN}, whose name says that it is secret" in ran[0].err
    check(ran, tmp_path)


def test_a_job_that_an_earlier_version_recorded_with_less_masked_is_the_same_job() -> None:
    was = {"stages": [], "state": "s3://b/st?project=x", "enrich": ["p=s3://b/t?project=x on user"]}
    now = {"stages": [], "state": "s3://b/st?project=***", "enrich": ["p=s3://b/t?project=*** on user"]}
    assert same_job(was, now)
    assert not same_job(was, {**now, "state": "s3://b/other?project=***"})
    assert not same_job({**was, "state": "s3://b/st?region=a"}, {**now, "state": "s3://b/st?region=b"})
    assert json.dumps(was) != json.dumps(now)
