"""A drawing of windows: a value that prints as text and shows as SVG in notebooks."""

from __future__ import annotations

from dataclasses import dataclass

from .picture import Picture
from .svg import picture_svg
from .text import picture_text


@dataclass(frozen=True, slots=True, repr=False)
class Drawing:
    """Windows over rows, drawn.

    ``picture``: what is drawn. ``str()`` is a text of at most 100 characters a line, `svg` an image.
    """

    picture: Picture

    def __str__(self) -> str:
        return picture_text(self.picture)

    def __repr__(self) -> str:
        return str(self)

    def svg(self) -> str:
        """Return the drawing as an SVG document, which needs no other file and suits light and dark pages."""
        return picture_svg(self.picture)

    def _repr_svg_(self) -> str:
        return self.svg()
