"""The one training loop: minibatches, averaged weights, early stopping, checkpoints, and errors that help."""

from __future__ import annotations

import copy
import hashlib
import io
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count, islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from craftrl._version import __version__
from craftrl.arrays import Ints
from craftrl.data.files import written_whole
from craftrl.data.ranks import digest, from_first, here, is_first_rank
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.oracles.network.ranks import add_up, descend
from craftrl.oracles.network.settings import Training, TrainingError, seeded
from craftrl.progress import progress_bar, tell, watched

Batch = TypeVar("Batch")
Batches = Callable[[Sequence[Ints], bool], Iterable[Batch | None]]  # None where this rank has no rows of a minibatch
Loss = Callable[[Any, Batch], tuple[Tensor, Tensor]]
MAX_MINIBATCHES = 1500  # of a training, unless epochs are given
MIN_MINIBATCHES = 300  # before which training does not end
EVALUATE_EVERY = 100  # minibatches
PATIENCE = 2  # held-out losses in a row that are no better, after which training ends
PLATEAU = 0.015  # nats below chance from which on a network has begun to learn: before, training does not end
GAIN = 0.001  # nats by which a held-out loss must fall to be better
WARM_UP = 60  # minibatches over which the rate rises to its full height: at once it may kill a network
DECAY, BETAS = 1e-3, (0.9, 0.99)  # of AdamW
RECENT = 3.0  # a minibatch's weights count in the average as its number, to this power less one
MIN_TRAJECTORIES, MIN_OBSERVATIONS = 16, 160  # of a minibatch
LARGE_DATA = 100_000  # observations from which on minibatches grow


def minibatch_size(training: Training, n: int, H: int) -> int:
    """How many of n trajectories make a minibatch."""
    if training.batch is not None:
        return min(training.batch, n)
    return min(n, max(MIN_TRAJECTORIES, MIN_OBSERVATIONS // H) * int(np.clip(n * H // LARGE_DATA, 1, 4)))


def train(
    module: nn.Module,
    loss: Loss[Batch],
    batches: Batches[Batch],
    rows: tuple[Ints, Ints],
    size: int,
    training: Training,
    name: str,
    chance: float | None = None,
    data: Callable[[], str] = str,
    part: tuple[int, int] = (0, 1),
) -> float:
    """Train in place, leave the best averaged weights on held-out rows, and return their held-out loss.

    loss     of a module and a minibatch: the sum of its losses, and over how many it is
    batches  what the loss is given, for each of some minibatches of rows; the flag says whether they are learned from.
             Several ranks divide each of them
    rows     training and held-out rows
    size     rows of a minibatch
    chance   the loss of knowing nothing, if that is known: training does not end before it has left it
    data     what the rows stand for, in a few letters, for checkpoints
    part     how many networks were trained before, and how many there are in all

    Gradients and held-out losses are summed over ranks, so that all take the same steps and end with the same weights.
    The average weighs minibatch t as t squared, so that it reaches over about the last third of them at any time.
    """
    device, (learned, held_out) = training.to_device(), rows
    if here()[1] > 1 and any(isinstance(layer, nn.modules.batchnorm._BatchNorm) for layer in module.modules()):
        raise InvalidParameterError(
            "A trunk that several ranks train must treat each observation by itself; this one has batch "
            "normalisation; use nn.GroupNorm instead."
        )
    module.to(device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # convolutions work in it
    parameters = [p for p in module.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(parameters, training.lr, BETAS, weight_decay=DECAY, fused=True)
    average = copy.deepcopy(module)
    best = copy.deepcopy(module.state_dict())
    t, lowest, stale = 0, math.inf, 0  # minibatches; the lowest held-out loss; how many since were no better
    per_epoch = max(1, len(learned) // size)
    most = per_epoch * (max(2, round(MAX_MINIBATCHES / per_epoch)) if training.epochs is None else training.epochs)
    checkpoint = Checkpoint(training.checkpoints, name, lambda: _run(module, training, data))
    if saved := checkpoint.load(device):
        module.load_state_dict(saved["module"])
        average.load_state_dict(saved["average"])
        optimiser.load_state_dict(saved["optimiser"])
        best, (t, lowest, stale) = saved["best"], saved["stand"].values()
    chunks_held = np.array_split(held_out, max(1, math.ceil(len(held_out) / (4 * size))))
    tell(name, trained=(part[0] + t / most) / part[1])
    bar = _bar(training, name, most, t)
    epochs = (training.rng(name, epoch).permutation(learned) for epoch in count(t // per_epoch))
    minibatches = (rows for shuffled in epochs for rows in np.array_split(shuffled, per_epoch))
    coming = islice(minibatches, t % per_epoch, None)
    while t < most and not (stale >= PATIENCE and t >= MIN_MINIBATCHES):
        chunks = list(islice(coming, min(EVALUATE_EVERY, most - t)))
        module.train()
        own_noise = f"-rank-{here()[0]}" if here()[0] else ""
        with seeded(training, f"{name}-{t}{own_noise}", device), _enough_memory():
            for batch in batches(chunks, True):
                t += 1
                tell(name, trained=(part[0] + t / most) / part[1])
                optimiser.param_groups[0]["lr"] = training.lr * min(1.0, t / WARM_UP)
                optimiser.zero_grad(set_to_none=True)
                with training.precision(device):
                    summed, n_summed = (None, 0.0) if batch is None else loss(module, batch)
                descend(summed, n_summed, parameters)
                optimiser.step()
                with torch.no_grad():
                    for a, b in zip(average.parameters(), module.parameters()):
                        a.lerp_(b, RECENT / (t + RECENT - 1))
            for own, buffer in zip(average.buffers(), module.buffers()):
                own.copy_(buffer)
            held = _mean_loss(average.eval(), loss, batches(chunks_held, False), training.precision(device))
        if not math.isfinite(held):
            mixed = ", or set amp=False" if training.amp and device.type == "cuda" else ""
            raise TrainingError(
                f"The loss of '{name}' is no longer finite after {t} minibatches; lower lr (now "
                f"{training.lr:g}){mixed}."
            )
        begun = chance is None or min(held, lowest) < chance - PLATEAU
        stale = stale + 1 if begun and held > lowest - GAIN else 0
        if held < lowest:
            best, lowest = copy.deepcopy(average.state_dict()), held
        parts = {"module": module.state_dict(), "average": average.state_dict(), "optimiser": optimiser.state_dict()}
        checkpoint.save({**parts, "best": best, "stand": {"t": t, "best": lowest, "stale": stale}})
        bar.set_postfix_str(f"held-out {held:.4f}" + (f", chance {chance:.4f}" if chance else ""))
        bar.update(t - bar.n)
    bar.close()
    module.load_state_dict(best)
    module.eval()
    return lowest


@torch.no_grad()
def _mean_loss(module: nn.Module, loss: Loss[Batch], batches: Iterable[Batch | None], precision: Any) -> float:
    """Over all of some minibatches, those of the other ranks among them."""
    total = torch.zeros(2, dtype=torch.float64)
    with precision:
        for batch in batches:
            if batch is not None:
                total += torch.stack([value.double() for value in loss(module, batch)]).cpu()
    total = add_up(total)
    return float(total[0] / total[1].clamp_min(1.0))


class Checkpoint:
    """One file per training run, replaced in one move, so that a kill leaves the last whole one.

    settings  gives how is trained and from what data, in words; a file with others is refused

    The first rank writes, and reads for all. The state is that of the whole training, so that another number of ranks
    can go on with it.
    """

    def __init__(self, folder: str | Path | None, name: str, settings: Callable[[], str]) -> None:
        self.path = None if folder is None else Path(folder) / f"{name}.pt"
        self.settings = "" if folder is None else settings()

    def load(self, device: torch.device) -> dict[str, Any] | None:
        """What was saved, if anything was."""
        path = self.path
        if path is None:
            return None
        try:
            if (found := from_first(lambda: path.read_bytes() if path.exists() else None)) is None:
                return None
            if hashlib.sha256(content := found[32:]).digest() != found[:32]:
                raise ValueError("its checksum does not fit")
            saved: dict[str, Any] = torch.load(io.BytesIO(content), map_location=device, weights_only=True)
            settings = saved["settings"]
        except Exception as error:
            raise InvalidDataError(
                f"The checkpoint {path} cannot be read; it may come from elsewhere or be damaged; delete that one file "
                "to train this part again."
            ) from error
        if settings != self.settings:
            raise InvalidDataError(
                f"The checkpoint {path} belongs to other settings or data, or to another version of craftrl; use "
                "those again, or give an empty folder."
            )
        return saved

    def save(self, state: dict[str, Any]) -> None:
        """Write, if there is a folder."""
        path = self.path
        if path is None:
            return
        content = io.BytesIO()
        torch.save({**state, "settings": self.settings}, content)

        def write() -> None:
            with written_whole(path, "checkpoint") as temporary:
                temporary.write_bytes(hashlib.sha256(content.getbuffer()).digest() + content.getvalue())

        from_first(write)


def _run(module: nn.Module, training: Training, data: Callable[[], str]) -> str:
    """What a training run depends on, in words: version, settings, data, layers and the weights that it begins with."""
    weights = digest(*(weight.detach().cpu().float().numpy() for weight in module.parameters()))
    return repr((__version__, training.signature(), from_first(data), digest(module), weights))


@contextmanager
def _enough_memory() -> Iterator[None]:
    """With a useful word where a GPU has none left."""
    try:
        yield
    except torch.cuda.OutOfMemoryError as error:
        raise TrainingError("The GPU ran out of memory; lower Training(batch=...), or the trunk's width.") from error


def _bar(training: Training, name: str, total: int, start: int) -> Any:
    """Hidden where a fit shows one bar over all trainings."""
    wanted = sys.stderr.isatty() if training.progress is None else training.progress
    hidden = not wanted or watched() or not is_first_rank()
    return progress_bar(total=total, initial=start, desc=name, leave=False, disable=hidden)
