"""Where it is counted or trained: on this machine, or on a Ray cluster."""

from __future__ import annotations

import argparse

from craftrl.arguments import positive
from craftrl.errors import InvalidParameterError

__all__ = ["add_backend_options", "refuse_cluster_options"]


def add_backend_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("more than one machine")
    group.add_argument(
        "--ray",
        metavar="ADDRESS",
        help="count, or train networks, on the Ray cluster at HOST:PORT, auto for the one of this machine, or local "
        "for one that is started here",
    )
    group.add_argument("--workers", type=positive, metavar="N", help="networks on Ray: how many ranks (default: all)")


def refuse_cluster_options(args: argparse.Namespace) -> None:
    """On this machine alone there is no cluster to describe."""
    if args.workers is not None:
        raise InvalidParameterError("--workers is for networks on a cluster; add --ray ADDRESS, or leave it out.")
