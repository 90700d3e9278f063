"""The windows a user declares: tumbling and hopping, with an offset and a name."""

from __future__ import annotations

from dataclasses import dataclass

from panes.errors import DeclarationError, DurationError
from panes.timeline import DurationLike, Geometry, format_duration, parse_duration


@dataclass(frozen=True, slots=True)
class Window:
    """A window over event time: where its instances lie, and what results call it."""

    geometry: Geometry
    name: str

    def __str__(self) -> str:
        return self.name


def tumbling(size: DurationLike, *, offset: DurationLike = "0s", name: str | None = None) -> Window:
    """Instances of one size, one after another: ``[offset + m * size, offset + (m + 1) * size)``.

    Examples
    --------
    >>> tumbling("20 min")
    Window(geometry=Geometry(range=1200000000, slide=1200000000, offset=0), name='20m')
    """
    return hopping(size, every=size, offset=offset, name=name)


def hopping(size: DurationLike, *, every: DurationLike, offset: DurationLike = "0s", name: str | None = None) -> Window:
    """Instances of one size, a new one every so often.

    ``every`` may be longer than ``size``: events between instances then belong to none. ``size`` need not be a
    multiple of ``every``.

    Examples
    --------
    >>> str(hopping("1 hour", every="5 min")), str(hopping("1 day", every="1 day", offset="6h"))
    ('1h/5m', '1d+6h')
    """
    range_ = _positive(size, "size")
    slide = _positive(every, "every")
    shift = parse_duration(offset)
    geometry = Geometry(range_, slide, shift)
    return Window(geometry, _name(geometry) if name is None else _checked_name(name))


def default_name(geometry: Geometry) -> str:
    """What a window is called when it was given no name."""
    return _name(geometry)


def _name(geometry: Geometry) -> str:
    text = format_duration(geometry.range)
    if not geometry.tumbling:
        text += f"/{format_duration(geometry.slide)}"
    if geometry.offset:
        text += f"+{format_duration(geometry.offset)}"
    return text


def _positive(value: DurationLike, what: str) -> int:
    micros = parse_duration(value)
    if micros <= 0:
        raise DurationError(f"{what}={value!r} is not positive: a window needs some length. Write for example '5 min'.")
    return micros


def _checked_name(name: str) -> str:
    if not isinstance(name, str) or not name.strip():
        raise DeclarationError(f"name={name!r} cannot name a window. Write a word, or leave it out.")
    return name
