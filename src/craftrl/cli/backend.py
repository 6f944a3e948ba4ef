"""Where a network is trained: on this machine, or by ranks on a Ray cluster."""

from __future__ import annotations

import argparse

from craftrl.arguments import positive
from craftrl.errors import InvalidParameterError

__all__ = ["add_backend_options", "refuse_cluster_options"]


def add_backend_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("networks on more than one machine")
    group.add_argument(
        "--backend",
        choices=["local", "ray"],
        default="local",
        help="local: this process (default); ray: networks are trained by workers of Ray",
    )
    group.add_argument(
        "--address",
        metavar="A",
        help="ray: the cluster at HOST:PORT, ray://HOST:PORT or auto (default: a Ray on this machine)",
    )
    group.add_argument("--workers", type=positive, metavar="N", help="ray on this machine: cores to use (default: all)")


def refuse_cluster_options(args: argparse.Namespace) -> None:
    """On this machine alone there is no cluster to describe."""
    for name in ("address", "workers"):
        if getattr(args, name) is not None:
            raise InvalidParameterError(f"--{name} is for a cluster; add --backend ray, or leave it out.")
