"""The section of units: a calendar of what is done, missing, run again, and held."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .....conf.ranges.units import unit_at
from ..report import Calendar, Cell
from .elements import Element, add, add_svg, set_attributes
from .tables import add_hidden_table
from .ticks import day_text

_LARGE, _SMALL = 46, 14
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MOST_LARGE = 140
_SHADES = 4


@dataclass(frozen=True, slots=True)
class Grid:
    """Where cells stand.

    ``columns``: their number; ``heads``: column to its label.
    ``rows``: the label of each row.
    ``places``: (row, column) of each cell.
    ``is_large``: whether cells have room for words.
    ``apart``: how many rows are a block, which stands apart from the next; 0: all rows are one.
    """

    columns: int
    heads: Mapping[int, str]
    rows: tuple[str, ...]
    places: tuple[tuple[int, int], ...]
    is_large: bool
    apart: int = 0

    def y(self, row: int) -> int:
        """Return where a row begins, in pixels below the heads."""
        return row * (_LARGE if self.is_large else _SMALL) + (row // self.apart * 8 if self.apart else 0)


def add_calendar(parent: Element, calendar: Calendar) -> None:
    """Add the section."""
    add(parent, "p", text=_about(calendar))
    figure = add(parent, "figure", "calendar")
    grid = _grid(calendar)
    _add_grid(figure, calendar, grid)
    _add_legend(figure, calendar, grid.is_large)
    head = [calendar.kind, "state", "rows in", calendar.out, "late", "other rejects", "held"]
    add_hidden_table(figure, "Units", head, [_cells(cell) for cell in calendar.cells])


def _about(calendar: Calendar) -> str:
    cells = calendar.cells
    done, redone, gaps = (sum(getattr(cell, name) for cell in cells) for name in ("done", "redone", "gaps"))
    unit = calendar.unit
    words = [f"{done + redone:,} {unit}{'' if done + redone == 1 else 's'} done"]
    words += [f"{redone:,} of them {calendar.again}"] if redone else []
    words += [f"{gaps:,} without input"] if gaps else []
    span = "" if len(cells) < 2 else f", from {cells[0].label} to {cells[-1].label}"
    text = f"{', '.join(words)}{span}."
    if calendar.kind != calendar.unit:
        text += f" A cell is a {calendar.kind}."
    if calendar.hidden:
        text += f" {calendar.hidden:,} earlier cells are not shown."
    return text


def _grid(calendar: Calendar) -> Grid:
    cells, first = calendar.cells, calendar.cells[0].ordinal if calendar.cells else 0
    if calendar.kind == "day":
        return _weeks(calendar) if cells[-1].ordinal - first < _MOST_LARGE else _years(calendar)
    columns = {"hour": 24, "week": 52, "run": 10 if len(cells) <= 60 else 50}[calendar.kind]
    base = first - first % columns if calendar.kind == "hour" else first
    places = tuple(divmod(cell.ordinal - base, columns) for cell in cells)
    rows = [""] * (places[-1][0] + 1)
    for cell, (row, _) in zip(reversed(cells), reversed(places), strict=True):
        rows[row] = _short(cell.label, calendar.kind)
    heads = {at: f"{at:02}" for at in range(0, 24, 6)} if calendar.kind == "hour" else {}
    return Grid(columns, heads, tuple(rows), places, calendar.kind == "run" and len(cells) <= 60)


def _short(label: str, kind: str) -> str:
    """Return the label of a row that begins with a cell."""
    if kind == "run":
        return label.removeprefix("run-").lstrip("0")[:7]
    day = label.partition("T")[0]
    return day_text(day) if kind == "hour" else day[:7]


def _weeks(calendar: Calendar) -> Grid:
    """Return a row for each week, from Monday to Sunday."""
    places = [divmod(cell.ordinal + 3, 7) for cell in calendar.cells]  # 1970-01-01 is a Thursday
    first, last = places[0][0], places[-1][0]
    rows = tuple(day_text(unit_at(week, "week").label) for week in range(first, last + 1))
    return Grid(7, dict(enumerate(_DAYS)), rows, tuple((week - first, day) for week, day in places), True)


def _years(calendar: Calendar) -> Grid:
    """Return seven rows for each 53 weeks, a column for each week."""
    places = [divmod(cell.ordinal + 3, 7) for cell in calendar.cells]
    first = places[0][0]
    blocks = (places[-1][0] - first) // 53 + 1
    rows = tuple(
        unit_at(first + block * 53, "week").label[:7] if day == 0 else "" for block in range(blocks) for day in range(7)
    )
    found = tuple(((week - first) // 53 * 7 + day, (week - first) % 53) for week, day in places)
    return Grid(53, {}, rows, found, False, 7)


def _add_grid(figure: Element, calendar: Calendar, grid: Grid) -> None:
    tall = _LARGE if grid.is_large else _SMALL
    top = 16 if grid.heads else 0
    label = 13.0 if grid.is_large or calendar.kind == "hour" else 9.0  # percent of the width for labels of rows
    wide = (100 - label) / grid.columns
    svg = add_svg(figure, "units", top + grid.y(len(grid.rows)) + 2, _about(calendar))
    for column, text in grid.heads.items():
        add(svg, "text", "faint", text, x=f"{label + column * wide:.2f}%", y=11)
    for row, text in enumerate(grid.rows):
        add(svg, "text", "faint", text, x=0, y=top + grid.y(row) + 11)
    busiest, fullest = (
        max((getattr(cell, name) for cell in calendar.cells), default=0) for name in ("rows_in", "held")
    )
    for cell, (row, column) in zip(calendar.cells, grid.places, strict=True):
        box = _Box(label + column * wide, top + grid.y(row), wide, tall)
        title = f"{cell.label}: {_words(cell, calendar.again)}"
        _add_cell(svg, cell, title, box, grid.is_large, busiest, fullest)


@dataclass(frozen=True, slots=True)
class _Box:
    """Where a cell stands: ``x`` and ``wide`` in percent of the width, ``y`` and ``tall`` in pixels."""

    x: float
    y: float
    wide: float
    tall: float

    def at(self, share: float) -> str:
        """Return the place of a share of the width of the cell."""
        return f"{self.x + share * self.wide:.2f}%"


def _add_cell(svg: Element, cell: Cell, title: str, box: _Box, is_large: bool, busiest: int, fullest: int) -> None:
    inner = 0.97 if is_large else 0.88
    shade = 0 if not busiest else min(_SHADES, -(-cell.rows_in * _SHADES // busiest))
    edge = " redone" if cell.redone else " some" if cell.gaps else ""
    square = add(svg, "rect", f"cell s{shade}{edge}" if cell.done + cell.redone else "cell gap")
    set_attributes(square, x=box.at(0), y=box.y + 1, width=f"{box.wide * inner:.2f}%", height=box.tall - 3)
    add(square, "title", text=title)
    if cell.late:
        x, y, radius = (0.88, 27, 3) if is_large else (0.7, 7, 2)
        add(svg, "circle", "trouble", cx=box.at(x), cy=box.y + y, r=radius)
    if is_large:
        _add_words(svg, cell, box, inner * cell.held / fullest if fullest else 0)


def _add_words(svg: Element, cell: Cell, box: _Box, held: float) -> None:
    """Add what a large cell says besides. ``held``: the share of the width for the bar of rows that are held."""
    add(svg, "text", "day", cell.label[8:] if len(cell.label) == 10 else cell.label[-3:], x=box.at(0.05), y=box.y + 14)
    if not cell.done + cell.redone:
        add(svg, "text", "faint", "gap", x=box.at(0.05), y=box.y + 30)
        return
    add(svg, "text", "", f"{cell.rows_in:,}", x=box.at(0.05), y=box.y + 31)
    if cell.redone:
        add(svg, "text", "again", "\u21bb", x=box.at(0.9), y=box.y + 15, text_anchor="end")
    if held:
        bar = add(svg, "rect", "held", x=box.at(0), y=box.y + box.tall - 6, height=4)
        set_attributes(bar, width=f"{box.wide * held:.2f}%")


def _add_legend(figure: Element, calendar: Calendar, is_large: bool) -> None:
    cells = calendar.cells
    known = (
        ("s3", "done; the stronger, the more rows came in", True),
        ("redone", calendar.again, any(cell.redone for cell in cells)),
        ("gap", "no input", any(cell.gaps and not cell.done + cell.redone for cell in cells)),
        ("s2 some", "some units have no input", any(cell.gaps and cell.done for cell in cells)),
        ("held", "rows held, as long as the bar", is_large and any(cell.held for cell in cells)),
        ("trouble", "has late rows", any(cell.late for cell in cells)),
    )
    legend = add(figure, "p", "legend")
    for classes, words, is_there in known:
        if is_there:
            entry = add(legend, "span")
            _add_swatch(add(entry, "svg", width=14, height=14, aria_hidden="true"), classes)
            add(entry, "span", text=words)


def _add_swatch(svg: Element, classes: str) -> None:
    if classes == "trouble":
        add(svg, "circle", classes, cx=7, cy=8, r=3)
    elif classes == "held":
        add(svg, "rect", classes, x=1, y=6, width=12, height=4)
    else:
        add(svg, "rect", f"cell {'s2 redone' if classes == 'redone' else classes}", x=1, y=2, width=12, height=11)


def _words(cell: Cell, again: str) -> str:
    parts = [f"{cell.done} done"] if cell.done > 1 else ["done"] if cell.done else []
    parts += [f"{cell.redone} {again}"] if cell.redone > 1 else [again] if cell.redone else []
    parts += [f"{cell.gaps} gaps"] if cell.gaps > 1 else ["gap"] if cell.gaps else []
    if cell.done + cell.redone:
        parts.append(f"{cell.rows_in:,} rows in")
    parts += [f"{cell.late:,} late"] if cell.late else []
    parts += [f"{cell.rejected:,} rejected"] if cell.rejected else []
    parts += [f"{cell.held:,} held"] if cell.held else []
    return ", ".join(parts)


def _cells(cell: Cell) -> list[str]:
    state = ", ".join(
        word if n == 1 else f"{n} {word}"
        for n, word in ((cell.done, "done"), (cell.redone, "redone"), (cell.gaps, "gap"))
        if n
    )
    counts = (cell.rows_in, cell.out, cell.late, cell.rejected, cell.held)
    return [cell.label, state, *(f"{n:,}" if cell.done + cell.redone else "" for n in counts)]
