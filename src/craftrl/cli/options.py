"""What the options of several commands share: numbers, paths, worlds, and how recordings are read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter, Token

from craftrl.errors import InvalidParameterError

if TYPE_CHECKING:
    from craftrl.envs import MarkovPolicy

__all__ = [
    "Bound",
    "Count",
    "Data",
    "Force",
    "Model",
    "Number",
    "Positive",
    "Recordings",
    "World",
    "in_options",
    "opt",
    "refuse",
]


# What a sentence of the library advises, as one says it on the command line.
OPTIONS = {
    "or call explore": "or let it try (--explore STEPS)",
    "With deterministic=True": "Without --stochastic",
    "pass deterministic=False": "give --stochastic",
    "give deterministic=False": "give --stochastic",
    "use ray='local'": "use --ray local",
    "use device='cpu'": "use --device cpu",
    "give n if it is known": "give --n if it is known",
    'start="find" and stationary=True': "--find-start --stationary",
    'start="find"': "--find-start",
    " (import_data(..., standardise='recording'))": " (--standardise recording)",
    ", name the start of each in fit(..., start=...), or let the library look: start='find'": ", or give --find-start",
}


def in_options(text: str) -> str:
    """What the library says, for somebody on the command line."""
    for python, option in OPTIONS.items():
        text = text.replace(python, option)
    return text


def refuse(*cases: tuple[object, str]) -> None:
    """Raise with the sentence of the first case that holds."""
    for wrong, sentence in cases:
        if wrong:
            raise InvalidParameterError(sentence)


def opt(text: str, **more: Any) -> Parameter:
    """What --help says of an option."""
    return Parameter(help=text, **more)


def _whole(least: int, kind: Any, tokens: Sequence[Token]) -> int:
    text = tokens[0].value
    if not re.fullmatch("[0-9]{1,18}", text) or int(text) < least:
        raise ValueError(f"must be a whole number of at least {least}, below 10**18; {text!r} was given")
    return int(text)


def _number(kind: Any, tokens: Sequence[Token]) -> float | str:
    text = tokens[0].value
    try:
        return text if text == "auto" and kind is not float else float(Fraction(text))
    except (ValueError, ZeroDivisionError, OverflowError) as error:
        raise ValueError(f"must be a number or a fraction such as 5/32; {text!r} was given") from error


def _pixels(counts: tuple[int, ...], what: str, kind: Any, tokens: Sequence[Token]) -> tuple[int, ...]:
    parts = re.split("[,x]", tokens[0].value)
    if len(parts) not in counts or not all(re.fullmatch("[0-9]{1,9}", part) for part in parts):
        raise ValueError(f"must be {what}; {tokens[0].value!r} was given")
    return tuple(map(int, parts * 2 if len(parts) == 1 else parts))


Positive = Annotated[int, Parameter(converter=partial(_whole, 1), n_tokens=1, metavar="N")]
Count = Annotated[int, Parameter(converter=partial(_whole, 0), n_tokens=1, metavar="N")]
Number = Annotated[float, Parameter(converter=_number, n_tokens=1, metavar="NUMBER")]
Bound = Annotated[float | str, Parameter(converter=_number, n_tokens=1, metavar="NUMBER")]
_size = partial(_pixels, (1, 2), "WxH such as 64x48, or one number")
_box = partial(_pixels, (4,), "four whole numbers L,T,W,H")
Size = Annotated[tuple[int, ...], Parameter(converter=_size, n_tokens=1, metavar="WxH")]
Box = Annotated[tuple[int, ...], Parameter(converter=_box, n_tokens=1, metavar="L,T,W,H")]
Model = Annotated[str, opt("as craftrl fit writes it")]
Data = Annotated[str, opt("a dataset, as craftrl import, collect or fit writes it")]
Force = Annotated[bool, opt("replace a file that is there already")]


@Parameter(name="*", group="Recordings")
@dataclass(frozen=True)
class Recordings:
    """How recordings are read: the parameters of `import_data`."""

    stride: Annotated[Positive, opt("keep one of N steps")] = 1
    crop: Annotated[Box | None, opt("pictures: left, top, width and height in pixels")] = None
    resize: Annotated[Size | None, opt("pictures: to this size, such as 64x48 or 64")] = None
    grey: Annotated[bool, opt("pictures: in one channel")] = False
    keys: Annotated[tuple[str, ...], opt("which array, camera or columns are observed; repeat it", name="--key")] = ()
    standardise: Annotated[
        Literal["recording", "agent"] | None, opt("pictures: each to the same mean and contrast, where light differs")
    ] = None
    boundaries: Annotated[str | None, opt("episodes within recordings, CSV: file, start, stop, agent if any")] = None


@Parameter(name="*", group="World")
@dataclass(frozen=True)
class World:
    """A world of the catalogue, and what it is made with."""

    world: Annotated[
        str | None,
        opt("bits (the paper's) or pixels"),
    ] = None
    horizon: Annotated[Positive | None, opt("steps per trajectory")] = None
    n_features: Annotated[Positive | None, opt("bits: observed bits", name="--features")] = None
    size: Annotated[Positive | None, opt("pixels: cells per side")] = None
    n_walkers: Annotated[Count | None, opt("pixels: distractors", name="--walkers")] = None
    world_seed: Annotated[Count, opt("of the world itself")] = 0

    def given(self) -> dict[str, int]:
        """The options that were given, as `make_world` calls them."""
        return {name: value for name, value in vars(self).items() if value is not None and "world" not in name}

    def made(self) -> tuple[Any, tuple[MarkovPolicy, ...]]:
        """The world and its agents."""
        from craftrl.envs import make_world

        return make_world(self.world or "", seed=self.world_seed, **self.given())
