"""The attacks, by class. Each takes a world, and says what fell, or raises `AssertionError`."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
from attack_world import DELTA, GIB, ON_STATE, SECRET, World, make_results
from deltalake import DeltaTable, write_deltalake

Strike = Callable[[World], str | None]


@dataclass(frozen=True)
class Attack:
    """One attack. ``kind``: its class. ``strike``: makes it, and returns what fell, None where nothing did."""

    kind: str
    name: str
    strike: Strike


def attacks(seed: int) -> list[Attack]:
    """Return all attacks. ``seed``: of bits and moments."""
    rng = random.Random(seed)
    found: list[tuple[str, str, Strike]] = [
        *(("side files", *each) for each in _side_files()),
        *(("strangers", *each) for each in _strangers()),
        *(("html", *each) for each in _pages()),
        *(("terminal", *each) for each in _terminals()),
        *(("secrets", *each) for each in _secrets()),
        *(("hangs", *each) for each in _hangs()),
        *(("mistakes", *each) for each in _mistakes()),
        *(("memory", *each) for each in _memory()),
        *(("damage", *each) for each in _damage(rng)),
        *(("links", *each) for each in _links()),
        *(("kills", *each) for each in _kills(rng)),
    ]
    return [Attack(*each) for each in found]


# Side files: what a run writes besides its result replaces nothing of others, and lies in nothing of others.

RUN = ("run", *DELTA, "--agg", "count()", "in", "out", "--enrich", "u=users.csv on user")
WRITERS = {"metrics": (*RUN, "--metrics-file"), "lineage": (*RUN, "--lineage"), "report": ("report", "done", "-o")}
VICTIMS = (
    "in/a.csv", "users.csv", "job.yaml", "done/part-00000.parquet", "done/_wincli/manifest.json", "st/.wincli-state",
    "st/2026-01-01/unit.json", "stranger.txt", "link-to-input", "hard-link-to-input", "in/new", "done/new", "st/new",
)  # fmt: skip


def _side_files() -> Iterator[tuple[str, Strike]]:
    for option, words in WRITERS.items():
        for victim in VICTIMS:
            yield f"{option} {victim}", partial(_writes_over, words=words, victim=victim)


def _writes_over(world: World, words: tuple[str, ...], victim: str) -> str | None:
    world.path("link-to-input").symlink_to("in/a.csv")
    world.path("hard-link-to-input").hardlink_to(world.path("in/a.csv"))
    before = world.contents()
    world.wincli(*words, victim)
    after = {name: found for name, found in world.contents().items() if name in before or not name.startswith("out/")}
    changed = sorted({name for name, _ in set(before.items()) ^ set(after.items())})
    return f"changed: {changed}" if changed else None


# Strangers: rows and records that stand where those of a result should.


def _strangers() -> Iterator[tuple[str, Strike]]:
    part, days = "part-00000.parquet", ("range/dt=2026-01-01", "range/dt=2026-01-02")
    for one, other in (("done", "other"), days, ("done", days[1])):
        yield (
            f"parts exchanged: {one} {other}",
            partial(_exchanged, one=f"{one}/{part}", other=f"{other}/{part}", reads=True),
        )
    for one, other in (("done", "other"), days):
        yield f"results exchanged: {one} {other}", partial(_exchanged, one=one, other=other, reads=True)
    units = ("st/2026-01-01", "st/2026-01-02")
    yield "states exchanged", partial(_exchanged, one=units[0], other=units[1], reads=False)
    for address in ("iceberg://..", "iceberg://../../x", "iceberg:///etc", "iceberg://a/../../b", "iceberg://%2e%2e"):
        yield f"address {address}", partial(_escapes, address=address)
    yield "a partition of Delta with rows of others", partial(_appended, kind="delta")


def _exchanged(world: World, one: str, other: str, reads: bool) -> str | None:
    make_results(world)
    middle = world.path("middle")
    for source, target in (
        (world.path(one), middle),
        (world.path(other), world.path(one)),
        (middle, world.path(other)),
    ):
        source.rename(target)
    folder = one.split("/", maxsplit=1)[0]
    world.refuses("verify", folder)
    if reads:
        world.refuses("run", "--window", "count(1)", "--agg", "count()", folder, "next")
    return None


def _escapes(world: World, address: str) -> str | None:
    before = world.contents()
    world.refuses("run", *DELTA, "--agg", "count()", "in", address)
    return None if world.contents() == before else "files were written"


def _appended(world: World, kind: str) -> str | None:
    words = ("run", *DELTA, "--agg", "sum(amount)", "--schema", "ts:timestamp", "days/dt={date}", "table/dt={date}")
    range_ = ("--start", "2026-01-01", "--end", "2026-01-02", "--output-format", kind)
    if world.wincli(*words, *range_).code:
        return "the table was not made"
    table = DeltaTable(str(world.path("table")))
    rows = table.to_pyarrow_table().slice(0, 1)
    write_deltalake(str(world.path("table")), rows, mode="append")
    count = len(DeltaTable(str(world.path("table"))).to_pyarrow_table())
    world.refuses(*words, *range_, "--redo")
    now: pa.Table = DeltaTable(str(world.path("table"))).to_pyarrow_table()
    return None if len(now) == count else f"{count} rows became {len(now)}"


# Pages: a value is data, never an element.

MARKUP = (
    "<script>window.x=1</script>", "<img src=x onerror=x()>", '"><svg onload=x()>', "</script><b>", "</title><i>x",
    "<!--", "-->", "]]>", "javascript:x()", "&lt;b&gt;", "&#60;b&#62;", "'onclick=x() '", '" style="x', "</style><u>",
    "<a href=x>", "{{7*7}}", "${x}", "`x`", "\\u003cb\\u003e", "<b", "</text></svg><b>", "__proto__", "<br/>",
    "<iframe srcdoc=x>",
)  # fmt: skip


class Elements(HTMLParser):
    """The elements of a page with the names of their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[tuple[str, ...]] = Counter()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found[(tag, *(name for name, _ in attrs))] += 1


def _pages() -> Iterator[tuple[str, Strike]]:
    for value in MARKUP:
        yield value, partial(_is_markup, value=value)


def _is_markup(world: World, value: str) -> str | None:
    pages = []
    for name, text in (("plain", "x" * len(value)), ("hostile", value)):
        quoted = '"' + text.replace('"', '""') + '"'
        world.write(f"{name}/a.csv", f"ts,{quoted},n\n" + "".join(f"{at * 100},{quoted},1\n" for at in range(5)))
        column = '"' + text.replace('"', '""') + '"'
        words = ("--window", "delta(ts,60)", "--key", column, "--agg", "count()", name, f"result-{name}")
        if world.wincli("run", *words).code:
            return None  # such a name of a column is refused
        if world.wincli("report", f"result-{name}", "-o", f"{name}.html").code:
            return "no report"
        page = Elements()
        page.feed(world.path(f"{name}.html").read_text())
        pages.append(page.found)
    changed = (pages[1] - pages[0]) + (pages[0] - pages[1])
    return f"elements: {dict(changed)}" if {key: n for key, n in changed.items() if key[0] in _NEVER or n > 8} else None


_NEVER = ("script", "img", "b", "i", "u", "a", "iframe", "br", "style", "svg")

# Terminals: `World.wincli` looks for control characters in all that is printed.

ESCAPES = "\x1b[2J\x1b]8;;http://x\x07\u202e\x9b2J\rerror: x"
COMMANDS = {
    "run": ("run", *DELTA, "--agg", "count()", "bad", "bad-out"), "plan": ("plan", *DELTA, "bad", "bad-out"),
    "show": ("show", "bad"), "why": ("why", "bad-done", f"user={ESCAPES}"), "diff": ("diff", "bad-done", "done"),
    "status": ("status", "bad-done"), "verify": ("verify", "bad-done"), "an option": ("run", f"--{ESCAPES}"),
    "a path": ("run", *DELTA, ESCAPES, "out"), "a window": ("run", "--window", ESCAPES, "in", "out"),
    "a key": ("run", "--window", "delta(ts,60)", "--key", ESCAPES, "in", "out"), "a command": (ESCAPES,),
    "a job file": ("run", f"{ESCAPES}.yaml"), "a value": ("run", "job.yaml", "--var", f"X={ESCAPES}"),
}  # fmt: skip


def _terminals() -> Iterator[tuple[str, Strike]]:
    for name, words in COMMANDS.items():
        yield name, partial(_prints, words=words)


def _prints(world: World, words: tuple[str, ...]) -> str | None:
    world.write("bad/a.csv", f'ts,user\n1,"{ESCAPES}"\n90,"{ESCAPES}"\n')
    world.write(f"bad/b{ESCAPES.replace('/', '')}.csv", "ts,user\n300,a\n")
    world.wincli("run", *DELTA, "--agg", "count()", "bad", "bad-done")
    world.wincli(*words)
    return None


# Secrets: what stands in no message and in no file.

FORMS = {
    "a broken address": f"s3:/KEY:{SECRET}@bucket/x", "a broken address without a slash": f"s3:KEY:{SECRET}@bucket/x",
    "a fragment": f"s3://b/x#token={SECRET}", "user info": f"s3://KEY:{SECRET}@b/x", "a parameter": f"s3://b/x?sig={SECRET}",
    "gs": f"gs://b/x?access_token={SECRET}", "iceberg": f"iceberg://KEY:{SECRET}@cat/t", "behind a slash":
    f"s3://b/user:{SECRET}@host/x", "no scheme": f"//KEY:{SECRET}@bucket/x",
}  # fmt: skip
SETTINGS = (
    "spark.executorEnv.PGPASSWORD", "spark.executorEnv.PGPASS", "fs.azure.sas.c.a.blob.core.windows.net",
    "spark.hadoop.fs.azure.sas.c.a", "spark.hadoop.fs.s3a.secret.key", "spark.hadoop.fs.azure.account.key.a",
    "spark.executorEnv.AWS_SESSION_TOKEN",
)  # fmt: skip


def _secrets() -> Iterator[tuple[str, Strike]]:
    for name, form in FORMS.items():
        yield f"{name}, input", partial(_told, words=("plan", *DELTA, form, "out"))
        yield f"{name}, job file", partial(_in_job_file, form=form)
    for name in SETTINGS:
        yield name, partial(_told, words=(*RUN, "--spark-conf", f"{name}={SECRET}"))


def _told(world: World, words: tuple[str, ...]) -> str | None:
    world.wincli(*words, secret=SECRET, env={"AWS_EC2_METADATA_DISABLED": "true"})
    kept = [name for name, content in world.contents().items() if SECRET.encode() in os.fsencode(content)]
    return f"kept in {kept}" if kept else None


def _in_job_file(world: World, form: str) -> str | None:
    path = world.write("s.yaml", f'window: delta(ts,60)\nkey: user\nagg: ["count()"]\ninput: "{form}"\noutput: out\n')
    world.wincli("plan", "s.yaml", secret=SECRET)
    path.unlink()
    kept = [name for name, content in world.contents().items() if SECRET.encode() in os.fsencode(content)]
    return f"kept in {kept}" if kept else None


# Hangs: `World.wincli` waits for an end.

STATE = ("run", *ON_STATE, "--redo")
PIPES = {
    "st/2026-01-01/window/rows-00000.parquet": STATE, "st/2026-01-03/unit.json": STATE, "st/.wincli-state": STATE,
    "range/dt=2026-01-01/_wincli/manifest.json": STATE, "done/part-00000.parquet": ("verify", "done"),
    "done/_wincli/manifest.json": ("verify", "done"), "in/b.csv": RUN, "events": (*RUN, "--lineage", "events"),
    "m.prom": (*RUN, "--metrics-file", "m.prom"), "p.yaml": ("run", "p.yaml"),
}  # fmt: skip


def _hangs() -> Iterator[tuple[str, Strike]]:
    for name, words in PIPES.items():
        if name != "p.yaml":
            yield f"a FIFO as {name}", partial(_is_pipe, name=name, words=words)
    yield "a server that does not answer", _silent_server
    yield "10,000 stages", _many_stages


def _is_pipe(world: World, name: str, words: tuple[str, ...]) -> str | None:
    world.path(name).unlink(missing_ok=True)
    os.mkfifo(world.path(name))
    world.wincli(*words)
    return None


def _silent_server(world: World) -> str | None:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        ended = world.wincli(*RUN, "--lineage", f"http://127.0.0.1:{server.getsockname()[1]}")
    return None if ended.code == 0 and "event" in ended.err else f"events lost in silence: {ended.err[-200:]!r}"


def _many_stages(world: World) -> str | None:
    stage = "  - {{name: s{0}, window: count(1), agg: ['count()'], output: o{0}}}\n"
    stages = "".join(map(stage.format, range(10_000))) + "  - {name: last, window: count(1), agg: ['count()']}\n"
    world.write("many.yaml", f"input: in\noutput: out\nstages:\n{stages}")
    world.wincli("plan", "many.yaml")
    return None


# Mistakes: `World.wincli` looks for stack traces and exit codes.

DEEP = "[" * 100_000


def _mistakes() -> Iterator[tuple[str, Strike]]:
    for output in ("/dev/null", ".", "..", "/", "in", "x" * 300, "a\nb"):
        yield f"output {output[:10]!r}", partial(_output, output=output)
    for target in ("http://[", "http://", "ftp://x", "nowhere/x", "in", "/dev/full", "x" * 300):
        yield f"lineage {target[:12]}", partial(_refused, words=(*RUN, "--lineage", target))
    for name in ("st/2026-01-03/unit.json", "done/_wincli/manifest.json", "st/.wincli-state"):
        yield f"deep JSON in {name}", partial(_record, name=name, content=DEEP)
        yield f"a folder as {name}", partial(_record, name=name, content=None)
    yield "deep JSON in a folder of a killed run", _deep_leftover
    yield "deep JSON in the log of a table", _deep_log
    yield "deep YAML", partial(_record, name="job.yaml", content=DEEP)


def _output(world: World, output: str) -> str | None:
    world.write("o.yaml", f'window: delta(ts,60)\nkey: user\nagg: ["count()"]\ninput: in\noutput: {output!r}\n')
    before = world.contents("in", "done", "st")
    world.wincli("run", "o.yaml")
    return None if world.contents("in", "done", "st") == before else "files of others were changed"


def _refused(world: World, words: tuple[str, ...]) -> str | None:
    world.wincli(*words)
    return None


def _record(world: World, name: str, content: str | None) -> str | None:
    world.path(name).unlink()
    if content is None:
        world.path(name).mkdir()
    else:
        world.write(name, content)
    top = name.split("/", maxsplit=1)[0]
    for words in (STATE, ("verify", top), ("status", top), ("run", "job.yaml")):
        world.wincli(*words)
    return None


def _deep_leftover(world: World) -> str | None:
    world.write("tmp/wincli-run-x/owner.lock", DEEP)
    world.write("tmp/wincli-run-x/x", "")
    ended = world.wincli(*RUN, "--master", "local[1]", "--spark-conf", "spark.executor.cores=1")
    return ended.err if ended.code else None


def _deep_log(world: World) -> str | None:
    world.write("table/_delta_log/00000000000000000000.json", '{"add":' + DEEP)
    world.refuses("run", *DELTA, "--agg", "count()", "table", "out")
    return None


# Memory: a small job takes less than 2 GiB.


def _memory() -> Iterator[tuple[str, Strike]]:
    lines = {
        "names that are values": "".join(f'{{"ts":{n},"n{n}":{n}}}\n' for n in range(16_000)),
        "nested names": "".join(f'{{"ts":{n},"m":{{"n{n}":{n}}}}}\n' for n in range(16_000)),
        "a line of 100 MB": '{"ts":1,"m":[' + "1," * 50_000_000 + "1]}\n",
        "a text of 100 MB": '{"ts":1,"m":"' + "x" * 100_000_000 + '"}\n',
    }
    for name, content in lines.items():
        yield name, partial(_in_memory, content=content, lets=())
    grown = [f"x{at}=replace(x{at - 1}, 'a', 'aaaaaaaaaa')" for at in range(1, 13)]
    words = tuple(word for let in ["x0='a' || cast(ts as varchar)", *grown] for word in ("--let", let))
    yield "replace that grows", partial(_in_memory, content='{"ts":1}\n' * 100, lets=words)
    grown = [f"x{at}=x{at - 1} || x{at - 1}" for at in range(1, 40)]
    words = tuple(word for let in ["x0=cast(ts as varchar)", *grown] for word in ("--let", let))
    yield "|| that doubles", partial(_in_memory, content='{"ts":1}\n' * 100, lets=words)


def _in_memory(world: World, content: str, lets: tuple[str, ...]) -> str | None:
    world.write("big/a.jsonl", content)
    agg = f"max({lets[-1].partition('=')[0]})" if lets else "count()"
    world.wincli("run", "--window", "delta(ts,60)", "--agg", agg, *lets, "big", "out", memory=2 * GIB)
    return None


# Damage: one bit of any file that wincli wrote.


def _damage(rng: random.Random) -> Iterator[tuple[str, Strike]]:
    for name in ("done/part-00000.parquet", "done/part-00000.parquet", "done/_wincli/manifest.json",
                 "range/dt=2026-01-02/part-00000.parquet", "range/dt=2026-01-02/_wincli/manifest.json",
                 "st/2026-01-02/window/rows-00000.parquet", "st/2026-01-02/window/keys-00000.parquet",
                 "st/2026-01-02/unit.json", "st/2026-01-03/window/rows-00000.parquet"):  # fmt: skip
        yield f"a bit of {name}", partial(_flipped, name=name, at=rng.random(), bit=rng.randrange(8))
    yield "a part cut in half", partial(_cut, name="done/part-00000.parquet")
    yield "a part is gone", partial(_gone, name="done/part-00000.parquet")
    yield "rows of a state are gone", partial(_gone, name="st/2026-01-03/window/rows-00000.parquet")


def _flipped(world: World, name: str, at: float, bit: int) -> str | None:
    content = bytearray(world.path(name).read_bytes())
    content[int(at * len(content))] ^= 1 << bit
    world.write(name, bytes(content))
    return _found(world, name)


def _cut(world: World, name: str) -> str | None:
    content = world.path(name).read_bytes()
    world.write(name, content[: len(content) // 2])
    return _found(world, name)


def _gone(world: World, name: str) -> str | None:
    world.path(name).unlink()
    return _found(world, name)


def _found(world: World, name: str) -> str | None:
    top = name.split("/", maxsplit=1)[0]
    return None if world.wincli("verify", top).code else "verify finds nothing"


# Links: what they lead to is replaced where it is a result, and nothing is written through a lock.


def _links() -> Iterator[tuple[str, Strike]]:
    yield "an output that is a link to a result", _linked_output
    yield "an output that is a link to a stranger's folder", partial(_linked, target="days")
    yield "an output that is a link to nothing", partial(_linked, target="nothing")
    yield "a lock that is a link", _linked_lock


def _linked_output(world: World) -> str | None:
    world.path("link").symlink_to("done")
    job = (
        world.path("job.yaml")
        .read_text()
        .replace("output: done", "output: link\nhaving: sum_amount > 3\nmode: overwrite")
    )
    world.write("linked.yaml", job)
    before = world.contents("done")
    if (ended := world.wincli("run", "linked.yaml")).code:
        return f"refused: {ended.err}"
    if world.contents("done") == before:
        return "the result was not replaced"
    return None if world.path("link").is_symlink() else "the link is gone"


def _linked(world: World, target: str) -> str | None:
    world.path("link").symlink_to(target)
    before = world.contents("days")
    world.wincli(*RUN[:-4], "in", "link")
    return None if world.contents("days") == before and world.path("link").is_symlink() else "a link was followed"


def _linked_lock(world: World) -> str | None:
    before = world.path("stranger.txt").read_bytes()
    for folder in (".", "st", "done", "done/_wincli"):
        for name in (".wincli-lock", ".out.wincli-lock", ".done.wincli-lock", "lock", ".lock", ".wincli.lock"):
            path = world.path(folder) / name
            if not path.exists():
                path.symlink_to(world.path("stranger.txt"))
    world.wincli(*RUN)
    world.wincli(*STATE)
    return None if world.path("stranger.txt").read_bytes() == before else "written through"


# Kills: the same command again gives the same result, and nothing is left.


def _kills(rng: random.Random) -> Iterator[tuple[str, Strike]]:
    for number in range(10):
        yield f"number {number}", partial(_killed, after=rng.uniform(0.2, 2.5), jobs=number % 2)


def _killed(world: World, after: float, jobs: int) -> str | None:
    words = ("run", *(word for word in ON_STATE if jobs == 0 or word not in ("--state", "st")), "--redo")
    words = (*words, *(("--jobs", "2") if jobs else ()))
    if jobs:
        shutil.rmtree(world.path("range"))
        words = tuple(word for word in words if word != "--redo")
        world.wincli(*words)
    good = _rows(world)
    process = world.start(*(words if "--redo" in words else (*words, "--redo")))
    time.sleep(after)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    world.wait_until_alone()
    if world.wincli(*(words if "--redo" in words else (*words, "--redo"))).code:
        return "the next run fails"
    if _rows(world) != good:
        return "other rows than before"
    hidden = [name for name in world.contents() if "/." in f"/{name}" and not name.endswith(".wincli-state")]
    return f"left: {world.leftovers() + hidden}" if world.leftovers() or hidden else None


def _rows(world: World) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(Path(world.path("range")).rglob("part-*"))}
