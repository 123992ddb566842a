"""What is secret, and texts without it."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from wincli.cli.run.fingerprint import same_inputs, same_job
from wincli.conf.job import paths_of, recorded, secrets_of
from wincli.conf.job_builder import make_job, pairs
from wincli.conf.job_file import read_job_file
from wincli.readers.options import parse_schema
from wincli.windowing.errors import ConfigError
from wincli.windowing.ports import InputFile
from wincli.windowing.support.redaction import is_secret, redacted, redacted_path, secret_values, without
from wincli.writers.places.place import restored


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("cannot reach s3://AKIA:SECRET@bucket/x: no", "cannot reach s3://***@bucket/x: no"),
        ("s3://TOKEN@bucket/x", "s3://***@bucket/x"),
        ("s3://AKIA:SEC/RET+x@bucket/x", "s3://***@bucket/x"),
        ("s3://AKIA:SECRET/x", "s3://AKIA:***/x"),
        ("abfss://box:PASS@account/x", "abfss://box:***@account/x"),
        ("https://a/b?x=1&sig=S&X-Amz-Signature=S, then", "https://a/b?x=1&sig=***&X-Amz-Signature=***, then"),
        ("s3://b/?access_key=A&secret_key=S&region=r", "s3://b/?access_key=***&secret_key=***&region=r"),
        ("--spark-conf spark.hadoop.fs.s3a.secret.key=S", "--spark-conf spark.hadoop.fs.s3a.secret.key=***"),
        ("-Dmy.password='a b' -Dx.y=1", "-Dmy.password=*** -Dx.y=1"),
        ("AWS_SECRET_ACCESS_KEY=S", "AWS_SECRET_ACCESS_KEY=***"),
        ("s3:/AKIA:SECRET@bucket/x", "s3:/***@bucket/x"),
        ("s3:AKIA:SEC/RET@bucket/x", "s3:***@bucket/x"),
        ("no /home/a/s3:/AKIA:SECRET@bucket/x", "no /home/a/s3:/***@bucket/x"),
        ("//AKIA:SECRET@bucket/x", "//***@bucket/x"),
        ("s3:\\\\AKIA:SECRET@b/x", "***@b/x"),
        ("s3://AKIA:12/RET@bucket/x", "s3://***@bucket/x"),
        ("s3://b/u:SECRET@h/x", "s3://b/***@h/x"),
        ("s3://b/u%3ASECRET%40h/x", "s3://b/***/x"),
        ("s3://b/x?foo=S&region=r#token=S", "s3://b/x?foo=***&region=r#token=***"),
        ("s3://b/x#SECRET", "s3://b/x#***"),
        ("s3://b/x;token=S", "s3://b/x;token=***"),
        ("s3://b/x?endpoint_override=http%3A%2F%2Fu%3AS%40h", "s3://b/x?endpoint_override=***"),
        ("s3%3A%2F%2FAKIA%3ASECRET%40b is no path", "*** is no path"),
        ("jdbc:postgresql://h/db?user=u&password=S", "jdbc:postgresql://h/db?user=***&password=***"),
        ("jdbc:oracle:thin:u/SECRET@h", "jdbc:***@h"),
        ("k8s://https://u:SECRET@h:443", "k8s://https://***@h:443"),
        ("login u:SEC@RET@host failed", "login ***@host failed"),
        ("with url: /?api_key=S (Caused by", "with url: /?api_key=*** (Caused by"),
        ("spark.executorEnv.PGUSER=me1", "spark.executorEnv.PGUSER=***"),
        ("spark.driver.extraJavaOptions='-Xss4m -Da.b=S'", "spark.driver.extraJavaOptions=-Xss4m -Da.b=***"),
        ("{'fs.s3a.secret.key': 'S', 'x': 'y'}", "{'fs.s3a.secret.key': '***', 'x': 'y'}"),
        ('[("token", "S")]', '[("token", "***")]'),
        ("Map(fs.s3a.secret.key -> S)", "Map(fs.s3a.secret.key -> ***)"),
        ('{\\"token\\": \\"S\\"}', '{\\"token\\": \\"***\\"}'),
        ("<SecretKey>S</SecretKey>", "<SecretKey>***</SecretKey>"),
        ("Authorization: AWS4-HMAC-SHA256 Credential=S", "Authorization: ***"),
        ("sent Bearer abcdef.gh", "sent Bearer ***"),
        ("x-api-key: S", "x-api-key: ***"),
        ("--api-key S --x y", "--api-key *** --x y"),
        ("jwt eyJhbGciOiJI.eyJzdWIiOiIx.c2ln!", "jwt ***!"),
    ],
)
def test_secrets_are_masked_in_texts(text: str, left: str) -> None:
    assert redacted(text) == left
    assert redacted(left) == left


@pytest.mark.parametrize(
    "text",
    [
        "s3://bucket/user@example.com/a.csv",
        "hdfs://ann@node:9000/a",
        "abfs://container@account/a",
        "spark://one:7077,two:7077",
        "s3://logs-{date:%Y}/a",
        "s3://[::1]:9000/a",
        "in/token=abc/key=1/a.csv",
        "tokens=sum(tokens)",
        "its key is user, not none",
        "token=first(token)",
        "s3://b/dt=2026-1?/region=eu/*.csv",
        "s3://b/a#1.csv",
        "in/2026-11-01T10:30@host.csv",
        "spark.sql.shuffle.partitions=8",
        "spark.local.dir=/scratch",
        "spark.serializer=org.apache.spark.serializer.KryoSerializer",
        "iceberg://catalog/ns.table/day=2026-11-02",
        "s3: access denied; credentials: no such profile",
        "where a.b='x' and ts=2026-11-01T10:30:45",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redacted(text) == text


@pytest.mark.parametrize(
    "text", ["://a" + "a" * 200_000, "s3://" + "[" * 100_000, "s3://" + ";" * 100_000 + "b", "=" + "-" * 200_000]
)
def test_long_texts_take_no_time(text: str) -> None:
    """Patterns that look back took ten seconds for some of these: nobody waits for an error so long."""
    began = time.process_time()
    redacted(text)
    assert time.process_time() - began < 2


@pytest.mark.parametrize("name", ["fs.s3a.access.key", "db_password", "AuthToken", "sig", "fs.azure.account.key.a.net"])
def test_names_of_secrets(name: str) -> None:
    assert is_secret(name)
    assert not is_secret("spark.executor.memory")


def test_secret_values_of_a_job_are_masked_everywhere() -> None:
    settings = {"a.secret": "hunter2222", "b.key": "true", "c.token": "abc", "d.opts": "-Dx.password=swordfish -Dy=z"}
    values = secret_values(settings, ["in", "s3://AKIA1234:SEC%2FRET@b/x"])
    told = "hunter2222 true abc swordfish AKIA1234 SEC/RET SEC%2FRET"
    assert without(told, values) == "*** true abc *** *** *** ***"
    values = secret_values({"a.keyColumn": "user_id", "fs.azure.account.key.a.net": "hunter2222"}, [])
    assert values == ("aHVudGVyMjIyMg", "hunter2222")


def job(secret: str) -> dict[str, object]:
    return {
        "window": "count(2)",
        "key": ["user"],
        "input": [f"s3://AKIA1234:{secret}@bucket/in"],
        "output": f"s3://AKIA1234:{secret}@bucket/out",
        "spark_conf": {"spark.hadoop.fs.s3a.secret.key": secret, "spark.executor.memory": "1g"},
    }


def test_a_job_is_recorded_without_secrets_and_is_the_same_job_with_others() -> None:
    one, other = (make_job(job(secret), None, parse_schema) for secret in ("hunter2222", "hunter3333"))
    assert "hunter2222" in secrets_of(one, {})
    told = recorded(one)
    assert "hunter" not in json.dumps(told)
    assert told["spark_conf"] == {"spark.hadoop.fs.s3a.secret.key": "***", "spark.executor.memory": "1g"}
    assert told["stages"][0]["key"] == ["user"]
    assert told == recorded(other)
    assert same_job(told, recorded(other))
    files = [[InputFile(f"s3://AKIA1234:{secret}@bucket/in/a.csv", 1, None)] for secret in ("hunter2222", "hunter3333")]
    assert same_inputs(*files)
    assert not same_inputs(files[0], [InputFile("s3://AKIA1234:hunter2222@elsewhere/in/a.csv", 1, None)])


def test_invalid_setting_is_reported_without_its_value() -> None:
    with pytest.raises(ConfigError, match=r"--spark-conf 'a\.secret\.key\*\*\*' is not K=V"):
        pairs(["a.secret.key: hunter2222"])
    with pytest.raises(ConfigError) as raised:
        make_job({**job("x"), "spark_conf": {"a.secret.key": ["hunter2222"], "b": ["c"]}}, None, parse_schema)
    assert "hunter2222" not in str(raised.value)
    assert "--b cannot be ***" in str(raised.value)


@pytest.mark.parametrize("said", ['"a.secret.key: hunter2222"', "{a.secret.key: !!binary hunter2222}"])
def test_job_file_with_invalid_settings_is_reported_without_their_values(tmp_path: Path, said: str) -> None:
    (tmp_path / "job.yaml").write_text(f"window: count(2)\ninput: a\noutput: b\nspark_conf: {said}\n")
    file = read_job_file(str(tmp_path / "job.yaml"))
    assert "not the text ***" in str(file.problems[0].error) or "not binary ***" in str(file.problems[0].error)


def test_a_recorded_path_gets_its_secrets_from_what_a_run_names() -> None:
    named = paths_of(make_job(job("hunter%2F2"), None, parse_schema))
    recorded_path = redacted_path("s3://AKIA1234:old@bucket/in/a.csv?region=r")
    assert restored(recorded_path, named) == "s3://AKIA1234:hunter%2F2@bucket/in/a.csv?region=r"
    assert restored("s3://bucket/in", named) == "s3://bucket/in"
    assert restored("in/***", named) == "in/***"
    with_query = ["s3://bucket/x?secret_key=S&region=q"]
    assert restored("s3://bucket/a?secret_key=***&b", with_query) == "s3://bucket/a?secret_key=S&b"
    below = redacted_path("s3://b/u:old@h/x?foo=old#token=old")
    assert restored(below, ["s3://b/u:new@h/y?foo=F#token=T"]) == "s3://b/u:new@h/x?foo=F#token=T"
    with pytest.raises(ConfigError, match=r"s3://\*\*\*@other/x is recorded without its secrets"):
        restored("s3://***@other/x", named)
