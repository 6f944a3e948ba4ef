"""The arguments that name an environment to act in: a Gymnasium id, a function of the user's, or a world of ours."""

from __future__ import annotations

import argparse
import ast
import os
import sys
from importlib import import_module
from typing import Any

from craftrl.cli.worlds import OPTIONS, add_world_arguments, world_of
from craftrl.errors import CraftError, InvalidParameterError, require

__all__ = ["add_environment_arguments", "environment_of"]


def add_environment_arguments(parser: argparse.ArgumentParser) -> None:
    """--env with --env-arg, or --world with its options."""
    group = parser.add_argument_group("environment")
    group.add_argument(
        "--env",
        metavar="ENV",
        help="an id of Gymnasium's, such as craftrl.envs:craftrl/PixelGrid-v0, or MODULE:FUNCTION of your own that "
        "makes an environment; MODULE is looked for here first",
    )
    group.add_argument(
        "--env-arg",
        action="append",
        default=[],
        type=_assignment,
        dest="env_args",
        metavar="NAME=VALUE",
        help="what it is made with, such as size=3; repeat it",
    )
    add_world_arguments(group, required=False)


def environment_of(args: argparse.Namespace) -> Any:
    """The environment that the arguments name."""
    if (args.env is None) == (args.world is None):
        given = "none" if args.env is None else "both"
        raise InvalidParameterError(
            f"An environment must be named by --env or by --world; {given} was given; --dry-run plans without one."
        )
    if args.world is not None:
        if args.env_args:
            raise InvalidParameterError(
                "--env-arg goes with --env; it was given with --world; give --size and so on, as to craftrl collect."
            )
        return _of_world(args)
    given_options = [name for name in OPTIONS if getattr(args, name) is not None]
    if given_options:
        raise InvalidParameterError(
            f"Options of a world go with --world; {given_options[0]} was given with --env; write "
            f"--env-arg {given_options[0]}={getattr(args, given_options[0])}."
        )
    return _by_name(args.env, dict(args.env_args))


def _of_world(args: argparse.Namespace) -> Any:
    from craftrl.envs import ExBMDP

    require("gymnasium", "envs")
    from craftrl.envs.gym import ExBMDPEnv, NumberedActions

    world, _ = world_of(args)
    return ExBMDPEnv(world) if isinstance(world, ExBMDP) else NumberedActions(world)


def _by_name(name: str, parameters: dict[str, Any]) -> Any:
    module, colon, rest = name.partition(":")
    gymnasium = require("gymnasium", "envs")
    make = None
    if colon:
        make = getattr(_imported(module, name), rest, None) if rest.isidentifier() else None
    try:
        return make(**parameters) if callable(make) else gymnasium.make(name, **parameters)
    except CraftError:
        raise
    except gymnasium.error.UnregisteredEnv as error:
        raise InvalidParameterError(
            f"--env must be an id that Gymnasium knows, or MODULE:FUNCTION; {name} is neither ({_first_line(error)}); "
            "check the name, and put the package that registers it before a colon, as in my_package:MyWorld-v0."
        ) from error
    except Exception as error:  # an environment of others may fail at anything
        text = f"{type(error).__name__}: {_first_line(error)}"
        raise InvalidParameterError(
            f"--env must name an environment that can be made; {name} could not ({text}); check --env-arg."
        ) from error


def _imported(module: str, name: str) -> Any:
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return import_module(module)
    except Exception as error:
        text = f"{type(error).__name__}: {_first_line(error)}"
        raise InvalidParameterError(
            f"--env must begin with a module that can be imported; {name} does not ({text}); check the name."
        ) from error


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [""])[0].rstrip(".")


def _assignment(text: str) -> tuple[str, Any]:
    """NAME=VALUE; a value that reads as a number, a list, True or None is one, and all else is text."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE; {text!r} was given")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return name, value
