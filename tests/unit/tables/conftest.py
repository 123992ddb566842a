"""A catalog of Iceberg tables for these tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.iceberg_catalog import Lake


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A new catalog, which the environment names."""
    lake = Lake(tmp_path / "lake")
    lake.set_environment(monkeypatch)
    lake.make()
    return lake
