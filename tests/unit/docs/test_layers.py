"""The page on architecture lists the import layers that are checked, and no others."""

from __future__ import annotations

import tomllib

import pytest

from support.docs_pages import ROOT

COLUMNS = {
    "top level": "wincli",
    "`windowing`": "wincli.windowing",
    "`windowing/engine`": "wincli.windowing.engine",
    "`cli`": "wincli.cli",
    "`readers`": "wincli.readers",
    "`writers`": "wincli.writers",
}


def layers_of_the_page() -> dict[str, list[set[str]]]:
    """The lines of each column of the table, from the top."""
    lines = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith("| top level |"))
    names = [cell.strip() for cell in lines[begin].strip("|").split("|")]
    columns: dict[str, list[set[str]]] = {name: [] for name in names}
    for line in lines[begin + 2 :]:
        if not line.startswith("|"):
            break
        for name, cell in zip(names, line.strip("|").split("|"), strict=True):
            columns[name] += [{word.strip("`") for word in cell.strip().split(", ")}] if cell.strip() else []
    return columns


def layers_that_are_checked() -> dict[str, list[set[str]]]:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = [each for each in config["tool"]["importlinter"]["contracts"] if each["type"] == "layers"]
    return {each["containers"][0]: [set(layer.split(" | ")) for layer in each["layers"]] for each in contracts}


@pytest.mark.parametrize("column", COLUMNS)
def test_the_page_on_architecture_lists_the_layers_that_are_checked(column: str) -> None:
    assert layers_of_the_page()[column] == layers_that_are_checked()[COLUMNS[column]]
