"""Commands over inputs and results in an object store, against an S3 server: what they say, and what they leave."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.in_process import wincli_here
from support.s3_server import S3Bucket, S3Server
from wincli.cli.inspection.explanation import recorded
from wincli.windowing.errors import ConfigError
from wincli.windowing.ports import InputFile
from wincli.windowing.support import file_systems
from wincli.windowing.tables import delta
from wincli.writers.places import open

RUN = ("run", "-w", "count(3)", "-a", "sum(n)")

ROWS = "ts,user,n\n" + "".join(f"{i},u{i % 3},{i}\n" for i in range(20))


@pytest.fixture
def log(tmp_path: Path, s3: S3Bucket) -> Path:
    """A folder with a log, which is in the bucket, too."""
    (tmp_path / "in.csv").write_text(ROWS)
    s3.client.put_object(Bucket=s3.name, Key="in/a.csv", Body=ROWS.encode())
    return tmp_path


def said(cwd: Path, *args: str, code: int = 0) -> str:
    """What a command writes to stderr, in one line where it fails; ids of buckets are left out."""
    ran = wincli_here(*args, cwd=cwd)
    assert ran.code == code, ran.err
    if code and not ran.out:
        assert ran.err.count("\n") == 1
    return re.sub(r"lake-\d+", "lake", ran.err + ran.out)


def names(s3: S3Bucket) -> list[str]:
    return [re.sub("-[0-9a-f]{12}", "", name) for name in s3.names()]


def test_result_in_a_store_is_that_of_a_local_run(log: Path, s3: S3Bucket) -> None:
    said(log, *RUN, "in.csv", "out")
    said(log, *RUN, f"{s3.uri}/in/", f"s3a://{s3.name}/res/out")
    assert "equal: 7 rows" in said(log, "diff", "out", f"{s3.uri}/res/out")
    assert "all as it was written" in said(log, "verify", f"{s3.uri}/res/out")
    assert "nothing to do" in said(log, *RUN, f"{s3.uri}/in/", f"{s3.uri}/res/out")
    assert said(log, "show", "out") == said(log, "show", f"{s3.uri}/res/out")
    said(log, "run", "-w", "count(2)", f"{s3.uri}/res/out", f"{s3.uri}/res/next")
    said(log, "run", "-w", "count(2)", "out", "next")
    assert "equal: 4 rows" in said(log, "diff", "next", f"{s3.uri}/res/next")
    written = ["_SUCCESS", "_wincli/manifest.json", "part-00000.parquet"]
    assert names(s3) == ["in/a.csv", *(f"res/{out}/{name}" for out in ("next", "out") for name in written)]


@pytest.mark.parametrize("form", [(), ("--output-format", "csv"), ("--partition-by", "n_mod=sum_n % 2")])
def test_a_flipped_bit_of_an_object_is_found(log: Path, s3: S3Bucket, form: tuple[str, ...]) -> None:
    said(log, *RUN, *form, "in.csv", f"{s3.uri}/res/out")
    parts = [name for name in s3.names() if "/part-" in name]
    assert parts
    for part in parts:
        content = s3.client.get_object(Bucket=s3.name, Key=part)["Body"].read()
        for at in range(0, len(content), 1 + len(content) // 2):
            changed = content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :]
            s3.client.put_object(Bucket=s3.name, Key=part, Body=changed)
            told = said(log, "verify", f"{s3.uri}/res/out", code=4)
            name = part.removeprefix("res/out/")
            assert f"damaged: s3://lake/res/out/{name}: its checksum is crc32:" in told
        s3.client.put_object(Bucket=s3.name, Key=part, Body=content)
    assert "all as it was written" in said(log, "verify", f"{s3.uri}/res/out")


def test_units_of_a_range_and_a_plain_result_do_not_mix_in_a_store(log: Path, s3: S3Bucket) -> None:
    s3.client.put_object(Bucket=s3.name, Key="days/dt=2026-11-01/a.csv", Body=ROWS.encode())
    days, units = f"{s3.uri}/days", ("--start", "2026-11-01", "--end", "2026-11-02")
    said(log, *RUN, days, f"{s3.uri}/res/one")
    said(log, *RUN, *units, days, f"{s3.uri}/res/units")
    before = s3.names()
    into_result = said(log, *RUN, *units, "-q", days, f"{s3.uri}/res/one", code=2)
    assert "output s3://lake/res/one/dt=2026-11-01 is inside s3://lake/res/one, which holds a result" in into_result
    into_units = said(log, *RUN, days, f"{s3.uri}/res/units", code=2)
    assert "s3://lake/res/units holds other results in its folders, such as dt=2026-11-01; nothing was" in into_units
    assert s3.names() == before


def test_parts_of_a_run_that_has_not_committed_are_no_input(log: Path, s3: S3Bucket) -> None:
    said(log, *RUN, "in.csv", f"{s3.uri}/res/out")
    put = s3.client.put_object
    put(Bucket=s3.name, Key="res/out/part-00000-0123456789ab-0123456789ab.parquet", Body=b"cut")
    assert "all as it was written" in said(log, "verify", f"{s3.uri}/res/out")
    assert "7 rows in" in said(log, "run", "-w", "count(2)", f"{s3.uri}/res/out", "next")
    put(Bucket=s3.name, Key="res/new/part-00000-0123456789ab-0123456789ab.parquet", Body=b"cut")
    put(Bucket=s3.name, Key="res/new/_wincli/manifest.json", Body=b'{"begun": "0123456789ab"}')
    assert "7 rows in" in said(log, "run", "-w", "count(2)", f"{s3.uri}/res", "next", "--mode", "overwrite")
    assert "res/new holds no result yet: a run writes there" in said(log, "show", f"{s3.uri}/res/new", code=3)
    said(log, *RUN, "in.csv", f"{s3.uri}/res/new")
    assert names(s3)[-1] == "res/out/part-00000.parquet"
    assert len([name for name in names(s3) if name.startswith("res/new/part")]) == 1


def test_files_of_a_result_in_a_store_are_read_by_its_manifest(log: Path, s3: S3Bucket) -> None:
    said(log, *RUN, "in.csv", f"{s3.uri}/res/out", "--partition-by", "closed_by")
    parts = [name for name in s3.names() if "part-" in name]
    files = [InputFile(f"{s3.uri}/{name}", 1, None) for name in [*parts, "in/a.csv"]]
    assert recorded._folders_of_results(files) == [f"{s3.uri}/res/out", f"{s3.uri}/in/a.csv"]


def test_bucket_path_or_column_that_is_not_there(log: Path, s3: S3Bucket) -> None:
    its, do = "there is no such bucket", "check the name of the bucket, and the endpoint"
    written = said(log, *RUN, "in.csv", "s3://no-such/out", code=3)
    assert written == f"wincli: error: cannot write s3://no-such/out: {its}; nothing was written; {do}\n"
    read = f"wincli: error: s3://no-such/in cannot be read: {its}; {do}\n"
    for command in (RUN, ("show",), ("verify",), ("status",)):
        assert said(log, *command, "s3://no-such/in", *(["out"] if command == RUN else []), code=3) == read
    near = "there is no file or folder s3://lake/inn; did you mean s3://lake/in?"
    assert near in said(log, *RUN, f"{s3.uri}/inn", "out", code=3)
    assert "nosuch" in said(log, *RUN, "-k", "nosuch", "in.csv", f"{s3.uri}/out", code=2)
    assert names(s3) == ["in/a.csv"]


def test_store_that_does_not_answer(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    its, do = "the store does not answer", "check the endpoint and the network"
    written = said(log, *RUN, "in.csv", "s3://lake/out", code=3)
    assert f"cannot write s3://lake/out: {its}; nothing was written; {do}" in written
    assert f"s3://lake/in cannot be read: {its}; {do}" in said(log, *RUN, "s3://lake/in", "out", code=3)


def test_store_that_does_not_answer_is_not_taken_for_one_without_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: str) -> None:
        raise OSError("curlCode: 7, Could not connect to server")

    monkeypatch.setattr(delta, "file_system_of", refuse)
    assert not delta.has_log("there")
    with pytest.raises(OSError, match="curlCode"):
        delta.has_log("s3://lake/table")


def test_credentials_without_rights(log: Path, s3: S3Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    from moto import settings
    from moto.core.responses import ActionAuthenticatorMixin

    monkeypatch.setattr(settings, "INITIAL_NO_AUTH_ACTION_COUNT", 0.0)
    monkeypatch.setattr(ActionAuthenticatorMixin, "request_count", 0)
    file_systems._reach_bucket.cache_clear()
    assert "in cannot be read: permission denied; check the credentials" in said(log, *RUN, f"{s3.uri}/in", "o", code=3)
    denied = "out: permission denied; nothing was written; check the credentials"
    assert denied in said(log, *RUN, "in.csv", f"{s3.uri}/out", code=3)


def test_store_that_refuses_in_the_middle_of_a_command(log: Path, s3: S3Bucket, s3_server: S3Server) -> None:
    said(log, *RUN, "in.csv", f"{s3.uri}/out")
    s3.client.delete_bucket_policy(Bucket=s3.name)
    for name in s3.names():
        s3.client.delete_object(Bucket=s3.name, Key=name)
    s3.client.delete_bucket(Bucket=s3.name)
    assert "there is no such bucket" in said(log, *RUN, "in.csv", f"{s3.uri}/out", code=3)


@pytest.mark.parametrize(
    ("uri", "told"),
    [
        ("s4://lake/out", "results are written to local folders, s3://, gs:// and abfs:// only, not to s4://lake/out"),
        ("s3:///out", "cannot make sense of the path s3:///out"),
    ],
)
def test_address_that_makes_no_sense(log: Path, uri: str, told: str) -> None:
    assert told in said(log, *RUN, "in.csv", uri, code=2)
    assert f"{uri} is no address that can be read" in said(log, "show", uri, code=3)


def test_missing_extra_is_named(log: Path, s3: S3Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, f"{open.__package__}.objects", None)
    told = said(log, *RUN, "in.csv", f"{s3.uri}/out", code=2)
    its = "a result or a state on s3:// needs the package obstore"
    assert told == f"wincli: error: {its}; in the folder of wincli, run: pip install '.[cloud]'\n"
    assert "20 rows in" in said(log, *RUN, f"{s3.uri}/in/", "out")


def test_missing_finder_of_credentials_is_named(s3: S3Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setitem(__import__("sys").modules, "obstore.auth.boto3", None)
    with pytest.raises(ConfigError, match="to find credentials for s3:// needs the package boto3"):
        open.open_store(s3.uri)


def test_doctor_tries_a_store_and_leaves_nothing(log: Path, s3: S3Bucket) -> None:
    told = said(log, "doctor", "--no-spark", "--store", f"{s3.uri}/res", "--store", "s3://no-such/res", code=1)
    assert "s3://lake/res: reached, listed, written, read, used for commits, in" in told
    assert "s3://no-such/res cannot be reached: there is no such bucket" in told
    assert names(s3) == ["in/a.csv"]
