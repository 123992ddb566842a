"""Places for Delta and Iceberg tables, on disk and in stores, and runs that write numbers there."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake
from pyarrow import fs
from pyiceberg.table.snapshots import Operation, update_snapshot_summaries

from support.iceberg_catalog import Lake
from support.numbered_units import ME
from support.s3_server import S3Bucket
from wincli.windowing.support.file_systems import file_system_of
from wincli.windowing.tables import delta_transaction
from wincli.windowing.tables.delta_library import storage_options, uri_of
from wincli.writers.commit.tables import table_of
from wincli.writers.output.manifest import _part
from wincli.writers.output.output import Output, open_output
from wincli.writers.places.atomic_files import list_files

SCHEMA = pa.schema([("user", pa.string()), ("n", pa.int64()), ("tags", pa.list_(pa.string()))])
REJECTS = pa.schema([("n", pa.int64())])
DATE = dt.date(2026, 11, 2)
DAY, NEXT = "day=2026-11-02", "day=2026-11-03"
TOKEN = "0123456789ab"


class _Place:
    """What a place for a table has in common."""

    def numbers(self, version: int | None = None) -> list[int]:
        return sorted(self.rows(version)["n"].to_pylist())  # type: ignore[attr-defined]

    def leftovers(self) -> list[str]:
        return [name for name in self.files() if TOKEN in name or ".wincli-" in name]  # type: ignore[attr-defined]


class Delta(_Place):
    """A Delta table, and what another program sees there and does."""

    def __init__(self, root: str) -> None:
        self.root = root

    def address(self, below: str = "") -> str:
        return f"delta+{self.root}/{below}".rstrip("/")

    def table(self) -> DeltaTable:
        return DeltaTable(uri_of(self.root), storage_options=storage_options(self.root))

    def rows(self, version: int | None = None) -> pa.Table:
        table = self.table()
        if version is not None:
            table.load_as_version(version)
        return table.to_pyarrow_table()

    def versions(self) -> int:
        return self.table().version() + 1

    def is_there(self) -> bool:
        return delta_transaction.find_table(self.root) is not None

    def append(self, *numbers: int, day: str = DAY) -> None:
        date = dt.date.fromisoformat(day.partition("=")[2])
        table = pa.table({"user": ["x"] * len(numbers), "n": list(numbers), "day": [date] * len(numbers)})
        write_deltalake(self.table(), table, mode="append", schema_mode="merge")

    def change(self, old: int, new: int) -> None:
        self.table().update(updates={"n": str(new)}, predicate=f"n = {old}")

    def compact(self) -> None:
        self.table().optimize.compact()

    def delete_day(self) -> None:
        self.table().delete("day = '2026-11-02'")

    def files(self) -> set[str]:
        place = table_of(self.address()).place
        found = {path.removeprefix(f"{place.path}/") for path in list_files(place.fs, place.path)}
        return {name for name in found if not name.startswith("_delta_log")}


class Iceberg(_Place):
    """The same of an Iceberg table."""

    def __init__(self, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lake, self.monkeypatch = lake, monkeypatch
        lake.set_environment(monkeypatch)
        lake.make()

    def address(self, below: str = "") -> str:
        return self.lake.address(f"clicks/{below}".rstrip("/"))

    def table(self) -> Any:
        return self.lake.table("clicks")

    def rows(self, version: int | None = None) -> pa.Table:
        table = self.table()
        number = None if version is None else table.snapshots()[version].snapshot_id
        return table.scan(snapshot_id=number).to_arrow()

    def versions(self) -> int:
        return len(self.table().snapshots())

    def is_there(self) -> bool:
        return bool(self.lake.catalog.table_exists("logs.clicks"))

    def append(self, *numbers: int, day: str = DAY) -> None:
        date = pa.scalar(dt.date.fromisoformat(day.partition("=")[2]))
        table = rows(*numbers).append_column("day", pa.repeat(date, len(numbers)))
        self.table().append(table.cast(self.table().schema().as_arrow()))

    def change(self, old: int, new: int) -> None:
        found = self.rows().filter(pc.field("n") == old)
        number = pa.array([new], pa.int64())
        self.table().overwrite(found.set_column(1, found.schema.field("n"), number), f"n = {old}")

    def compact(self) -> None:
        """As Spark's ``rewrite_data_files`` does; pyiceberg has no such call."""

        def replacing(**told: Any) -> Any:
            return update_snapshot_summaries(**told).model_copy(update={"operation": Operation.REPLACE})

        with self.monkeypatch.context() as patched:
            patched.setattr("pyiceberg.table.update.snapshot.update_snapshot_summaries", replacing)
            self.table().overwrite(self.rows().filter(pc.field("day") == DATE), "day = '2026-11-02'")

    def delete_day(self) -> None:
        self.table().delete("day = '2026-11-02'")

    def files(self) -> set[str]:
        system, path = file_system_of(self.lake.warehouse)
        found = system.get_file_info(fs.FileSelector(path, recursive=True, allow_not_found=True))
        names = {info.path.removeprefix(f"{path}/") for info in found if info.type == fs.FileType.File}
        return {name for name in names if "/metadata" not in name and name.count("/") > 1}


Place = Delta | Iceberg


def on_disk(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Delta(str(folder / "out")) if kind == "delta" else Iceberg(Lake(folder / "lake"), monkeypatch)


def in_store(kind: str, bucket: S3Bucket, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    if kind == "delta":
        return Delta(f"{bucket.uri}/lake/out")
    return Iceberg(Lake(folder / "lake", f"{bucket.uri}/tables"), monkeypatch)


def rows(*numbers: int) -> pa.Table:
    return pa.table([[f"u{n}" for n in numbers], list(numbers), [["a"]] * len(numbers)], schema=SCHEMA)


def write(output: Output, *tables: pa.Table, schema: pa.Schema = SCHEMA) -> dict[str, Any]:
    """Write a part for each table and some rejects, and return the manifest."""
    sink = output.result_sink("parquet", schema, REJECTS)
    parts = [part for at, table in enumerate(tables) for part in sink.write_parts(at, [table])]
    rejects = [_part(sink.write_rejects(0, pa.table({"n": [7]})))]
    rows_out = sum(table.num_rows for table in tables)
    return {"spec": "x", "rows_out": rows_out, "parts": [_part(part) for part in parts], "rejects": rejects}


def put(
    place: Place, below: str, *tables: pa.Table, mode: Any = "overwrite", evolve: bool = False, **options: Any
) -> None:
    with open_output(place.address(below), mode, [], ME, evolve=evolve) as output:
        output.commit(write(output, *tables, **options))


def begun(place: Place, below: str = DAY, token: str = TOKEN) -> Output:
    """A run that has begun, and may end anywhere: nothing is cleaned up."""
    table = table_of(place.address(below))
    table.make_parents()
    output = Output(table, table.commit(token), "overwrite")
    output.table_commit.open()
    return output


def prepared(place: Place, *tables: pa.Table, below: str = DAY, token: str = TOKEN, **told: Any) -> Output:
    output = begun(place, below, token)
    output.prepare({**write(output, *tables), **told})
    return output


def is_whole(place: Place, below: str = DAY) -> bool:
    table = table_of(place.address(below))
    manifest = table.manifest()
    return manifest is not None and table.missing(manifest) is None
