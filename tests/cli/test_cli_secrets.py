"""All that a run of Spark says and leaves, and the command lines of all its processes, searched for its secrets."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import psutil

from support.in_process import wincli_here
from support.processes import Ran, ended, run_args, start, write

SECRETS = ("confsecret", "javasecret", "urlsecret")
JOB = """
window: delta(ts, 60)
input: log
output: "file://{folder}/out?secret_key=urlsecret"
state: st
spark_conf:
  spark.hadoop.fs.s3a.secret.key: confsecret
  spark.driver.extraJavaOptions: "-Dmy.password=javasecret -Dmy.word='a b'"
"""


def seen_run(folder: Path, *args: str) -> tuple[Ran, str]:
    """Run a command; return the command lines of its processes, too."""
    env = {"TMPDIR": str(folder / "tmp"), "WINCLI_CLASS_ARCHIVE": "off"}  # nothing is to run on when it has ended
    process, lines = start(run_args(args), folder, env), set()
    while process.poll() is None:
        with contextlib.suppress(psutil.Error):  # one that has just ended
            running = psutil.Process(process.pid)
            lines |= {" ".join(each.cmdline()) for each in (running, *running.children(recursive=True))}
        time.sleep(0.01)
    return ended(process), "\n".join(lines)


def test_no_secret_is_printed_stored_or_on_a_command_line(tmp_path: Path) -> None:
    write(tmp_path, job__yaml=JOB.format(folder=tmp_path))
    write(tmp_path / "log", a__csv="ts\n1\nx y\n100\n")
    (tmp_path / "tmp").mkdir()
    ran, lines = seen_run(tmp_path, "job.yaml", "-vv", "--schema", "ts:int64")
    assert ran.code == 0, ran.err
    assert "SparkSubmit" in lines
    text = ran.out + ran.err + lines
    told = [wincli_here("status", path, *more, cwd=tmp_path) for path in ("st", "out") for more in ((), ("--json",))]
    told.append(wincli_here("run", "job.yaml", "--schema", "nope:int64", "-vv", "--log-format", "json", cwd=tmp_path))
    assert [each.code for each in told] == [0, 0, 0, 0, 2]
    text += "".join(each.out + each.err for each in told)
    assert "/out?secret_key=***" in text
    left = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "job.yaml"]
    assert {"unit.json", "manifest.json", "_SUCCESS"} <= {path.name for path in left}
    for secret in SECRETS:
        assert secret not in text
        assert [path for path in left if secret.encode() in path.read_bytes()] == []
    assert list((tmp_path / "tmp").iterdir()) == []
