"""What ranks do together with tensors: gradients added up, sums, rows gathered, values taken from the first.

With one process each of these does nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn

from craftrl.data.ranks import Ranks
from craftrl.oracles.network.process_group import ProcessGroup, heard

__all__ = ["GradientSum", "firsts", "gather_rows", "take_firsts", "total"]

Ints = NDArray[np.integer]


class GradientSum:
    """Adds up the gradients of all ranks, in place, in one exchange for each type of number.

    A rank whose share of a minibatch is empty has no gradients and adds nothing. Parameters without a gradient on any
    rank keep none, so that the optimiser leaves them alone as it does in one process; which those are is asked once.
    """

    def __init__(self, ranks: Ranks, parameters: Iterable[nn.Parameter]) -> None:
        self.ranks = ranks
        self.parameters = [p for p in parameters if p.requires_grad] if ranks.world > 1 else []
        self._groups: list[tuple[Tensor, list[nn.Parameter], list[Tensor]]] | None = None

    def __call__(self) -> None:
        if self.ranks.world == 1:
            return
        for flat, parameters, places in self._found():
            for parameter, place in zip(parameters, places):
                place.zero_() if parameter.grad is None else place.copy_(parameter.grad)
            _add_up(self.ranks, flat)
            for parameter, place in zip(parameters, places):
                parameter.grad = place

    def _found(self) -> list[tuple[Tensor, list[nn.Parameter], list[Tensor]]]:
        if self._groups is None:
            learned = np.any(self.ranks.every([p.grad is not None for p in self.parameters]), axis=0)
            used = [p for p, learns in zip(self.parameters, learned) if learns]
            self._groups = []
            for dtype in dict.fromkeys(p.dtype for p in used):
                same = [p for p in used if p.dtype == dtype]
                flat = torch.empty(sum(p.numel() for p in same), dtype=dtype, device=same[0].device)
                places = [part.view_as(p) for part, p in zip(flat.split([p.numel() for p in same]), same)]
                self._groups.append((flat, same, places))
        return self._groups


def total(ranks: Ranks, value: float) -> float:
    """The sum of what the ranks have, on all of them."""
    if ranks.world == 1:
        return value
    found = torch.tensor([value], dtype=torch.float64)
    _add_up(ranks, found)
    return float(found)


def gather_rows(ranks: Ranks, values: Sequence[Tensor], owner: Ints) -> Tensor:
    """Rows from all ranks, on all of them: row i of the result is the next one of rank `owner[i]`.

    `values` are this rank's own rows, in parts; a rank may have none.
    """
    if ranks.world == 1:
        return torch.cat(list(values))
    mine = torch.cat(list(values)) if len(values) else None
    known = ranks.every(None if mine is None else (tuple(mine.shape[1:]), mine.dtype, mine.device.type))
    shape, dtype, kind = next(found for found in known if found is not None)
    device = torch.device(kind) if mine is None else mine.device
    counts = np.bincount(owner, minlength=ranks.world)
    padded = torch.zeros((int(counts.max()), *shape), dtype=dtype, device=device)
    if mine is not None:
        padded[: len(mine)] = mine
    parts = _gather(ranks, padded)
    out = torch.empty((len(owner), *shape), dtype=dtype, device=device)
    for rank, part in enumerate(parts):
        out[torch.from_numpy(np.flatnonzero(owner == rank)).to(device)] = part[: counts[rank]]
    return out


@torch.no_grad()
def take_firsts(ranks: Ranks, tensors: Iterable[Tensor]) -> None:
    """Give these the values that they have on rank 0: what all have computed may differ in the last digit."""
    if ranks.world == 1:
        return
    for tensor in tensors:
        sent = tensor.detach().to(torch.uint8) if tensor.dtype == torch.bool else tensor.detach()
        there = _where_heard(ranks, sent).contiguous()
        with heard():
            dist.broadcast(there, 0)
        tensor.copy_(there)


def firsts(ranks: Ranks, array: NDArray[Any]) -> NDArray[Any]:
    """The array that rank 0 has; all ranks have one of the same shape and type."""
    if ranks.world == 1:
        return array
    found = torch.from_numpy(np.ascontiguousarray(array).copy())
    take_firsts(ranks, [found])
    return found.numpy()


def _add_up(ranks: Ranks, tensor: Tensor) -> None:
    there = _where_heard(ranks, tensor)
    with heard():
        dist.all_reduce(there)
    if there is not tensor:
        tensor.copy_(there)


def _gather(ranks: Ranks, tensor: Tensor) -> list[Tensor]:
    there = _where_heard(ranks, tensor)
    parts = [torch.empty_like(there) for _ in range(ranks.world)]
    with heard():
        dist.all_gather(parts, there)
    return [part.to(tensor.device) for part in parts]


def _where_heard(ranks: Ranks, tensor: Tensor) -> Tensor:
    """The tensor where the group can exchange it: a group of the user's own may know one kind of device alone."""
    assert isinstance(ranks, ProcessGroup)
    if tensor.device.type == "cpu":
        return tensor if ranks.on_cpu else tensor.cuda()
    return tensor if ranks.on_gpu else tensor.cpu()
