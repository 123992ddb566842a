"""What is secret, and texts without it."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from support.places import TESTS
from wincli.cli.run.fingerprint import same_inputs, same_job
from wincli.conf.job import paths_of, recorded, secrets_of
from wincli.conf.job_builder import make_job, pairs
from wincli.conf.job_file import read_job_file
from wincli.readers.options import parse_schema
from wincli.windowing.errors import ConfigError
from wincli.windowing.ports import InputFile
from wincli.windowing.support.redaction import is_secret, redacted, redacted_path, secret_values, without
from wincli.writers.places.place import restored

LINES = (TESTS / "cases/redacted_texts.txt").read_text(encoding="utf-8").splitlines()
"""Texts, and what is left of each; a line of one text alone is as it is."""


@pytest.mark.parametrize("line", LINES)
def test_secrets_are_masked_in_texts_and_nothing_else(line: str) -> None:
    text, _, left = line.partition(" ⇒ ")
    assert redacted(text) == (left or text)
    assert redacted(left) == left


@pytest.mark.parametrize(
    "text", ["://a" + "a" * 200_000, "s3://" + "[" * 100_000, "s3://" + ";" * 100_000 + "b", "=" + "-" * 200_000]
)
def test_long_texts_take_no_time(text: str) -> None:
    """Patterns that look back took ten seconds for some of these: nobody waits for an error so long."""
    began = time.process_time()
    redacted(text)
    assert time.process_time() - began < 2


def test_secret_values_of_a_job_are_masked_everywhere() -> None:
    names = ["fs.s3a.access.key", "db_password", "AuthToken", "sig", "fs.azure.account.key.a.net", "executor.memory"]
    assert list(filter(is_secret, names)) == names[:-1]
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
    for path, names, whole in (
        ("s3://AKIA1234:old@bucket/in/a.csv?region=r", named, "s3://AKIA1234:hunter%2F2@bucket/in/a.csv?region=r"),
        ("s3://bucket/in", named, "s3://bucket/in"),
        ("in/***", named, "in/***"),
        ("s3://bucket/a?secret_key=old&b", ["s3://bucket/x?secret_key=S&region=q"], "s3://bucket/a?secret_key=S&b"),
        (
            "s3://b/u:old@h/x?foo=old#token=old",
            ["s3://b/u:new@h/y?foo=F#token=T"],
            "s3://b/u:new@h/x?foo=F#token=T",
        ),
    ):
        assert restored(redacted_path(path), names) == whole
    with pytest.raises(ConfigError, match=r"s3://\*\*\*@other/x is recorded without its secrets"):
        restored("s3://***@other/x", named)
