"""How well colours are told apart, as WCAG 2 computes it."""

from __future__ import annotations

Colour = tuple[float, float, float]


def rgb(text: str) -> Colour:
    """The parts of a colour such as ``#2f6fd6``, from 0 to 1."""
    red, green, blue = (int(text[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return red, green, blue


def contrast(one: Colour | str, other: Colour | str) -> float:
    low, high = sorted(_luminance(rgb(each) if isinstance(each, str) else each) for each in (one, other))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: Colour) -> float:
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
