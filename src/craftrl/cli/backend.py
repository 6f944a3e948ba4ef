"""Where a command works: on this machine, or on the cores of a Ray cluster, where the shards are."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from craftrl.arguments import positive
from craftrl.errors import InvalidDataError, InvalidParameterError

if TYPE_CHECKING:
    from craftrl.data.places import Place
    from craftrl.distributed import RayExecutor

__all__ = ["add_backend_options", "parts_shown", "refuse_cluster_options", "shards_of", "workers_of"]


def add_backend_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("more data than one machine")
    group.add_argument(
        "--backend",
        choices=["local", "ray"],
        default="local",
        help="local: this process (default); ray: workers of Ray, each of which reads shards of its own",
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


@contextmanager
def parts_shown(what: str) -> Iterator[None]:
    """On one line, how many parts of what is done within the block are done, as soon as that takes seconds."""
    import sys

    from craftrl.progress import progress_bar, watched_by

    live = sys.stderr.isatty()
    with (
        progress_bar(desc=what, bar_format="{desc}", leave=False, delay=0.0 if live else 1.0) as bar,
        watched_by(lambda done, h: bar.set_description_str(f"{what}: {done}", refresh=live)),
    ):
        yield


def workers_of(args: argparse.Namespace) -> AbstractContextManager[RayExecutor]:
    """Those that were asked for, within a `with` statement."""
    from craftrl.distributed import RayExecutor

    return RayExecutor(args.address, workers=args.workers)


def shards_of(given: Sequence[str | os.PathLike[str]]) -> Place:
    """The one folder of shards that a cluster can read."""
    from craftrl.data.places import source
    from craftrl.data.shards import MANIFEST

    folder = source("DATA", given[0])
    if len(given) == 1 and isinstance(folder, Path) and not folder.exists():
        raise InvalidDataError(f"There must be a dataset at {folder}; nothing is there; check the name.")
    if len(given) > 1 or not (folder / MANIFEST).is_file():
        what = f"{folder} is none" if len(given) == 1 else f"{len(given)} paths were given"
        raise InvalidDataError(
            f"--backend ray needs one folder of shards, which many machines can read at once; {what}; make one with "
            "craftrl.TrajectoryDataset.open('data.h5').save('shards'), after craftrl import if these are recordings."
        )
    return folder
