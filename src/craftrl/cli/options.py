"""What the options of several commands share: numbers, paths, worlds, and how recordings are read."""

from __future__ import annotations

import ast
import os
import re
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import CoercionError, Parameter, Token

from craftrl.arguments import natural, quoted
from craftrl.errors import CraftError, InvalidParameterError, require

if TYPE_CHECKING:
    from craftrl.envs import MarkovPolicy


# What a sentence of the library advises in Python, as a pattern, and as one says it on the command line.
OPTIONS = {
    "or call explore": "or let it try (--explore STEPS)",
    "With deterministic=True": "Without --stochastic",
    "(pass|give) deterministic=False": "give --stochastic",
    "give n if it is known": "give --n if it is known",
    r" \(overwrite=True\)": "",
    r"import_data\(\.\.\., standardise='recording'\)": "--standardise recording",
    r", name the start of each in fit\(.*?\), or let the library look: start='find'": ", or give --find-start",
    "start=['\"]find['\"]": "--find-start",
    r"NeuralOracle\(embedding=(\d+)\)": r"--embedding \1",
    r" \(`diagnose\(\.\.\.\)\.camera\.heat`\)": "",
    "stationary=True": "--stationary",
    "stationary=False": "--no-stationary",
    r"(oracle|ray|device|coupling)=['\"](\w+)['\"]": r"--\1 \2",
}


def in_options(text: str) -> str:
    """What the library says, for somebody on the command line."""
    for python, option in OPTIONS.items():
        text = re.sub(python, option, text)
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
    return _wholes(least, kind, tokens)[0]


def _wholes(least: int, kind: Any, tokens: Sequence[Token]) -> tuple[int, ...]:
    found = []
    for token in tokens:
        try:
            found.append(natural(token.value, least))
        except ArgumentTypeError as error:
            raise CoercionError(msg=str(error), token=token) from error
    return tuple(found)


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
Counts = Annotated[tuple[int, ...], Parameter(converter=partial(_wholes, 0), consume_multiple=True, metavar="N ...")]
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
    """A world of this library, and what it is made with."""

    world: Annotated[Literal["bits", "pixels"] | None, opt("bits are the paper's")] = None
    horizon: Annotated[Positive | None, opt("steps per trajectory")] = None
    n_features: Annotated[Positive | None, opt("bits: observed bits", name="--features")] = None
    size: Annotated[Positive | None, opt("pixels: cells per side")] = None
    n_walkers: Annotated[Count | None, opt("pixels: distractors", name="--walkers")] = None
    world_seed: Annotated[Count, opt("of the world itself")] = 0

    def given(self) -> dict[str, int]:
        """The options that were given, as the classes of the worlds call them."""
        options = ("horizon", "n_features", "size", "n_walkers")
        return {name: getattr(self, name) for name in options if getattr(self, name) is not None}

    def made(self) -> tuple[Any, tuple[MarkovPolicy, ...]]:
        """The world and its agents."""
        from craftrl import envs

        bits = self.world == "bits"
        takes = ("horizon", "n_features") if bits else ("horizon", "size", "n_walkers")
        for name in self.given():
            sentence = f"The world {self.world} takes {', '.join(takes)} and seed; {name} was given; leave it out or "
            refuse((name not in takes, f"{sentence}choose another world."))
        kind: Any = envs.BitsExBMDP if bits else envs.PixelsExBMDP
        world = kind(**self.given(), seed=self.world_seed)
        return world, world.paper_policies() if bits else world.policies()


@Parameter(name="*", group="World")
@dataclass(frozen=True)
class Environment(World):
    """A world of this library or a Gymnasium environment, and what it is made with."""

    env: Annotated[
        str | None,
        opt("instead of a world: an id of Gymnasium's, or MODULE:FUNCTION; MODULE may lie in this folder"),
    ] = None
    env_arg: Annotated[tuple[str, ...], opt("what it is made with, NAME=VALUE such as size=3; repeat it")] = ()
    world_seed: Annotated[Count, opt("of the world itself; with --env, of the agents' preferences")] = 0

    def made(self) -> tuple[Any, tuple[MarkovPolicy, ...]]:
        """What `collect` takes: the world, or the environment as one, and its agents."""
        make = self._maker("horizon")
        if make is None:
            return super().made()
        from craftrl.envs import GymWorld

        world = make()
        if not isinstance(world, GymWorld):
            world.close()
            world = GymWorld(make, H=10 if self.horizon is None else self.horizon)
        longer = self.horizon not in (None, world.H)
        refuse((longer, f"Episodes of {self.env} have {world.H} steps; leave --horizon out."))
        return world, world.policies(seed=self.world_seed)

    def environment(self) -> Any:
        """A Gymnasium environment, to act in."""
        make = self._maker()
        require("gymnasium", "envs")
        from craftrl.envs import ExBMDP, GymWorld
        from craftrl.envs.gym import ExBMDPEnv

        found = super().made()[0] if make is None else make()
        if isinstance(found, ExBMDP):
            return ExBMDPEnv(found)
        return found.environment() if isinstance(found, GymWorld) else found

    def _maker(self, *takes: str) -> Callable[[], Any] | None:
        """What makes the environment that --env names, which takes these options; None where --world names a world."""
        which = "none" if self.env is None else "both"
        world_alone = "--env-arg goes with --env; give --size and so on with --world, as to craftrl collect."
        refuse(
            (
                (self.env is None) == (self.world is None),
                f"An environment must be named by --env or by --world; {which} was given.",
            ),
            (self.env is None and self.env_arg, world_alone),
        )
        if self.env is None:
            return None
        for name, value in self.given().items():
            sentence = f"Options of a world go with --world; with --env write --env-arg {name}={value}."
            refuse((name not in takes, sentence))
        gymnasium = require("gymnasium", "envs")
        parameters: dict[str, Any] = {}
        for text in self.env_arg:
            key, equals, parameters[key] = text.partition("=")
            refuse((not equals or not key.isidentifier(), f"--env-arg must be NAME=VALUE; {text!r} was given."))
            with suppress(ValueError, SyntaxError, MemoryError, RecursionError):  # else it is text
                parameters[key] = ast.literal_eval(parameters[key])
        return partial(_make, gymnasium.make, self.env, parameters)


def _make(make_id: Callable[..., Any], name: str, parameters: dict[str, Any]) -> Any:
    """The environment or `GymWorld` that a name of --env stands for."""
    from craftrl.envs import GymWorld

    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    module, _, function = name.partition(":")
    try:
        make = getattr(import_module(module), function, None) if function.isidentifier() else None
        found = make(**parameters) if callable(make) else make_id(name, **parameters)
    except CraftError:
        raise
    except Exception as error:  # an environment of others may fail at anything
        text = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0].rstrip('.')}"
        raise InvalidParameterError(
            f"--env must be an id that Gymnasium knows, or MODULE:FUNCTION, that makes an environment; {name} does not "
            f"({text}); check the name and --env-arg, and put the package that registers an id before a colon."
        ) from error
    can = all(callable(getattr(found, method, None)) for method in ("reset", "step", "close"))
    refuse(
        (
            not (isinstance(found, GymWorld) or can),
            f"--env must name what makes a Gymnasium environment, or a craftrl.envs.GymWorld; {name} gives "
            f"{quoted(found)}; have the function return one.",
        )
    )
    return found
