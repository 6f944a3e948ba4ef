"""Ranks that torch.distributed connects: found where somebody else has, started where torchrun has started us.

GPUs exchange tensors by NCCL, CPUs by Gloo. A rank that fails or is killed breaks its connections, and what the others
wait for ends in an error that says so; where that is not noticed, waiting ends after `PATIENCE`.
"""

from __future__ import annotations

import atexit
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist

from craftrl._version import __version__
from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.ranks import ALONE, RankError, Ranks, join, present, wants_to_be_alone
from craftrl.errors import InvalidParameterError

if TYPE_CHECKING:
    from craftrl.oracles.network.settings import Training

__all__ = ["LOST", "ProcessGroup", "announced", "begin", "heard", "ranks_for", "ranks_here"]

Value = TypeVar("Value")
GIVEN = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # what torchrun and its like tell each process
OWNER = "CRAFTRL_RANK_PROCESS"  # the process that is the rank: those that it starts inherit its environment
PATIENCE = timedelta(minutes=30)
LOST = "Another rank has ended or no longer answers"


class ProcessGroup(Ranks):
    """The ranks of torch's default process group.

    on_cpu, on_gpu  whether it exchanges tensors that lie there
    """

    def __init__(self) -> None:
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        backends = dist.get_backend_config()
        self.on_cpu, self.on_gpu = "cpu:" in backends, "cuda:nccl" in backends

    def every(self, value: Value) -> list[Value]:
        found: list[Any] = [None] * self.world
        with heard():
            dist.all_gather_object(found, value)
        return found

    def of_first(self, value: Value) -> Value:
        found = [value]
        with heard():
            dist.broadcast_object_list(found, 0)
        return found[0]


@contextmanager
def heard() -> Iterator[None]:
    """Errors of an exchange between ranks, in one sentence."""
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, RankError):
            raise
        raise RankError(
            f"{LOST} (this is rank {dist.get_rank() if dist.is_initialized() else '?'}); look for its message, and "
            "start all of them again: checkpoints are gone on with."
        ) from error


def begin() -> Ranks:
    """The ranks that this process is one of; alone where nobody has started several.

    What torchrun's variables announce is connected here, once, and let go of when the program ends. A group that the
    program has started itself is used as it is.
    """
    if wants_to_be_alone() or not dist.is_available():
        return ALONE
    if not dist.is_initialized():
        if not announced():
            join(ALONE)
            return ALONE
        _start()
    if not isinstance(present(), ProcessGroup):
        group = ProcessGroup()
        join(group if group.world > 1 else ALONE)
        _check_versions(present())
    return present()


def ranks_for(tau: TrajectoryDataset, training: Training) -> Ranks:
    """The ranks that fit this dataset together, once it is sure that all of them mean the same."""
    ranks = begin()
    if ranks.world > 1:
        _check_devices(ranks, training.to_device())
        ranks.agree("data", tau.fingerprint())
        ranks.agree("settings of training", training.but(checkpoints=None, progress=None, device="auto"))
    return ranks


def announced() -> bool:
    """Whether torchrun or its like says that this process is one of several."""
    mine = os.environ.get(OWNER, str(os.getpid())) == str(os.getpid())
    return mine and all(name in os.environ for name in GIVEN) and os.environ["WORLD_SIZE"] != "1"


def ranks_here() -> int:
    """How many ranks there are on this machine."""
    world = present().world
    return int(os.environ.get("LOCAL_WORLD_SIZE", str(world))) if world > 1 else 1


def _check_devices(ranks: Ranks, device: torch.device) -> None:
    """Raise unless every rank has a GPU of its own, or all have none."""
    if ranks.world == 1:
        return
    found = ranks.every(_name(device))
    if len({name is None for name in found}) == 2:
        raise InvalidParameterError("All ranks must use GPUs, or none of them; some have none; use device='cpu'.")
    if found[0] is not None and len(set(found)) < len(found):
        raise InvalidParameterError(
            f"Every rank must have a GPU of its own; {len(found)} ranks have {len(set(found))}; use device='cuda' "
            "without a number, and start no more processes on a machine than it has GPUs."
        )


def _name(device: torch.device) -> str | None:
    """A name that no other GPU has; None for a CPU."""
    if device.type != "cuda":
        return None
    index = torch.cuda.current_device() if device.index is None else device.index
    mark = getattr(torch.cuda.get_device_properties(index), "uuid", None)
    return f"{platform.node()} {os.environ.get('CUDA_VISIBLE_DEVICES')} {index}" if mark is None else str(mark)


def _start() -> None:
    os.environ[OWNER] = str(os.getpid())
    backend = "gloo"
    if torch.cuda.is_available() and dist.is_nccl_available():
        backend = "cpu:gloo,cuda:nccl"
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    with heard():
        dist.init_process_group(backend, timeout=PATIENCE)
    atexit.register(_end)


def _end() -> None:
    """Let go of the others at the end of the program; after an error they may wait for us, and we do not for them."""
    if dist.is_initialized() and getattr(sys, "last_value", None) is None:
        dist.destroy_process_group()


def _check_versions(ranks: Ranks) -> None:
    mine = (
        f"craftrl {__version__}, Python {platform.python_version()}, NumPy {np.__version__}, torch {torch.__version__}"
    )
    found = ranks.every(mine)
    if differ := [rank for rank, other in enumerate(found) if other != found[0]]:
        raise RankError(
            f"All ranks must run the same versions; rank 0 has {found[0]}, rank {differ[0]} has {found[differ[0]]}; "
            "install the same on all machines."
        )
