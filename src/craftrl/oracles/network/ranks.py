"""Networks on several GPUs or machines: torchrun starts the ranks, each computes its share of every minibatch.

Gradients, held-out losses and what is read off all frames are added up over the ranks, so that all of them hold the
same weights and take the same decisions. In one process each function here does nothing. A rank that fails breaks its
connections, and what the others wait for ends in an error that says so.
"""

from __future__ import annotations

import atexit
import os
import platform
import sys
from collections.abc import Sequence
from datetime import timedelta

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from craftrl._version import __version__
from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.ranks import agree, every, exchange_errors, here
from craftrl.errors import InvalidParameterError
from craftrl.oracles.network.settings import Training

GIVEN = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # what torchrun and its like tell each process
OWNER = "CRAFTRL_RANK_PROCESS"  # the process that is the rank: those that it starts inherit its environment
PATIENCE = timedelta(minutes=30)


def announced() -> bool:
    """Whether torchrun or its like says that this process is one of several."""
    mine = os.environ.get(OWNER, str(os.getpid())) == str(os.getpid())
    return mine and all(name in os.environ for name in GIVEN) and os.environ["WORLD_SIZE"] != "1"


def begin() -> None:
    """Join the ranks that torchrun has started, once; a group that the program has started itself is used as it is."""
    if not dist.is_available() or dist.is_initialized() or not announced():
        return
    os.environ[OWNER] = str(os.getpid())
    backend = "gloo"
    if torch.cuda.is_available() and dist.is_nccl_available():
        backend = "cpu:gloo,cuda:nccl"
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    with exchange_errors():
        dist.init_process_group(backend, timeout=PATIENCE)
    atexit.register(_end)


def _end() -> None:
    """Let go of the others at the end of the program; after an error they may wait for us, and we do not for them."""
    if dist.is_initialized() and getattr(sys, "last_value", None) is None:
        dist.destroy_process_group()


def check_ranks(tau: TrajectoryDataset, training: Training, *settings: object) -> None:
    """Join the ranks there are, and raise unless all of them mean the same and have a GPU each, or none."""
    begin()
    if here()[1] == 1:
        return
    versions = __version__, platform.python_version(), np.__version__, torch.__version__
    agree("versions of craftrl, Python, NumPy and torch", versions)
    agree("data", tau.fingerprint())
    agree("settings of training", training.signature(), *settings)
    device = training.to_device()
    index = torch.cuda.current_device() if device.type == "cuda" and device.index is None else device.index
    found = every((device.type, platform.node(), os.environ.get("CUDA_VISIBLE_DEVICES"), index))
    kinds = {kind for kind, *_ in found}
    if len(kinds) == 2 or (kinds == {"cuda"} and len(set(found)) < len(found)):
        raise InvalidParameterError(
            f"Every rank must have a GPU of its own, or all must have none; {len(found)} ranks have "
            f"{len({name for name in found if name[0] == 'cuda'})}; start no more processes on a machine than it has "
            "GPUs, or use device='cpu'."
        )


def descend(loss: Tensor | None, count: Tensor | float, parameters: Sequence[nn.Parameter]) -> None:
    """Gradients of the mean loss of a minibatch: `loss` and `count` are the sums over this rank's share of it.

    A rank whose share is empty has no loss and adds nothing.
    """
    if here()[1] == 1:
        assert loss is not None, "a minibatch is not empty"
        (loss / max(float(count), 1.0)).backward()
        return
    if loss is not None:
        loss.backward()
    grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    flat = torch.cat([*(g.flatten().float() for g in grads), grads[0].new_tensor([float(count)]).float()])
    with exchange_errors():
        dist.all_reduce(flat)
    flat = flat / flat[-1].clamp_min(1.0)
    for p, part in zip(parameters, flat[:-1].split([p.numel() for p in parameters])):
        p.grad = part.view_as(p).to(p.dtype)


def add_up(values: Tensor) -> Tensor:
    """The sum of what the ranks have, on all of them."""
    if here()[1] > 1:
        with exchange_errors():
            dist.all_reduce(values)
    return values


def gathered(parts: Sequence[tuple[Tensor, Tensor]], n: int) -> Tensor:
    """Values (n, ...) of all rows, on every rank, from the (rows, values) of each rank's own."""
    first = parts[0][1] if parts else None
    shapes = every(None if first is None else tuple(first.shape[1:]))
    out = torch.zeros((n, *next(shape for shape in shapes if shape is not None)))
    for rows, values in parts:
        out[rows.cpu()] = values.float().cpu()
    return add_up(out)
