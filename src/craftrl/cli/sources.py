"""The arguments of import, for every command that takes recordings."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from craftrl.arguments import natural, positive
from craftrl.errors import InvalidParameterError

__all__ = ["add_import_options", "import_options", "refuse_import_options"]

OPTIONS = ("stride", "crop", "resize", "grey", "keys", "boundaries", "clip")


def add_import_options(parser: argparse.ArgumentParser) -> None:
    """How recordings are read; none of them is needed."""
    group = parser.add_argument_group("recordings")
    group.add_argument("--stride", type=positive, default=1, metavar="N", help="keep one of N steps (default: all)")
    group.add_argument("--crop", type=_crop, metavar="L,T,W,H", help="pictures: left, top, width and height in pixels")
    group.add_argument("--resize", type=_size, metavar="WxH", help="pictures: to this size, such as 64x48 or 64")
    group.add_argument("--grey", action="store_true", help="pictures: in one channel")
    group.add_argument(
        "--key",
        action="append",
        default=[],
        dest="keys",
        metavar="NAME",
        help="the array, camera or column that is observed, where there are several; columns: repeat it",
    )
    group.add_argument(
        "--boundaries",
        type=Path,
        metavar="CSV",
        help="episodes within recordings: file, start, stop, agent if any",
    )
    group.add_argument("--clip", type=positive, metavar="N", help="cut episodes into clips of N steps")


def import_options(args: argparse.Namespace) -> dict[str, Any]:
    """The same as parameters of `import_data`."""
    return {name: getattr(args, name) for name in OPTIONS}


def refuse_import_options(args: argparse.Namespace) -> None:
    """A store was imported before: how recordings are read is settled."""
    options = {**import_options(args), "store": getattr(args, "store", None)}
    given = [name for name, value in options.items() if value not in (1, None, False, [])]
    if given:
        raise InvalidParameterError(
            f"--{'key' if given[0] == 'keys' else given[0]} is for recordings that are imported; "
            f"{args.data[0]} is a store already; leave it out, or import again."
        )


def _crop(text: str) -> tuple[int, ...]:
    try:
        left, top, width, height = (natural(part) for part in text.split(","))
    except (ValueError, argparse.ArgumentTypeError) as error:
        raise argparse.ArgumentTypeError(f"must be four whole numbers L,T,W,H; {text!r} was given") from error
    return left, top, width, height


def _size(text: str) -> tuple[int, int]:
    try:
        width, height = (positive(part) for part in (text.split("x") if "x" in text else (text, text)))
    except (ValueError, argparse.ArgumentTypeError) as error:
        raise argparse.ArgumentTypeError(f"must be WxH such as 64x48, or one number; {text!r} was given") from error
    return width, height
