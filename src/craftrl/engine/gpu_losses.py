"""From counts on a device to the loss of every pair of encoders.

Written naively, each bin of the grid is three passes over all cells. On a CUDA device, torch compiles the whole
minimum into one pass (`torch.cuda.jiterator`), and for binary encoders all four cells of a pair as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.errors import require

__all__ = ["CellLoss", "cell_loss", "summed_losses"]

Tensor = Any
UNROLLED = 32

LEAST_LOSS = """
template <typename T> T least_loss(T a, T b) {{
  const double table[] = {{{numbers}}};
  double least = a * table[{last}] + b * table[0];
  #pragma unroll {unroll}
  for (int j = 1; j <= {last}; ++j) {{
    const double loss = a * table[{last} - j] + b * table[j];
    least = loss < least ? loss : least;
  }}
  return least;
}}
"""

BINARY_LOSS = """
template <typename T> T binary_loss(T c_a, T c_b, T p_a, T p_b, T q_a, T q_b, T n_a, T n_b) {{
  const double table[] = {{{numbers}}};
  const double a[] = {{c_a, p_a - c_a, q_a - c_a, n_a - p_a - q_a + c_a}};
  const double b[] = {{c_b, p_b - c_b, q_b - c_b, n_b - p_b - q_b + c_b}};
  double sum = 0;
  #pragma unroll
  for (int cell = 0; cell < 4; ++cell) {{
    double least = a[cell] * table[{last}] + b[cell] * table[0];
    #pragma unroll {unroll}
    for (int j = 1; j <= {last}; ++j) {{
      const double loss = a[cell] * table[{last} - j] + b[cell] * table[j];
      least = loss < least ? loss : least;
    }}
    sum += least;
  }}
  return sum;
}}
"""


class CellLoss:
    """(a, b) -> min over bins of a T[n_xi - j] + b T[j], one bin after the other."""

    def __init__(self, table: NDArray[np.int64]) -> None:
        self.torch = require("torch", "neural")
        self.table = [float(t) for t in table]

    def __call__(self, a: Tensor, b: Tensor) -> Tensor:
        least = a * self.table[-1] + b * self.table[0]
        for backwards, forwards in zip(self.table[-2::-1], self.table[1:]):
            least = self.torch.minimum(least, a * backwards + b * forwards)
        return least

    def binary(self, *counts: Tensor) -> Tensor | None:
        """All cells of two binary encoders at once, where there is a way: see BINARY_LOSS."""
        return None


class CompiledCellLoss(CellLoss):
    """The same, compiled by torch for a CUDA device."""

    def __init__(self, table: NDArray[np.int64]) -> None:
        super().__init__(table)
        numbers = {
            "numbers": ", ".join(f"{t:.1f}" for t in self.table),
            "last": len(table) - 1,
            "unroll": min(len(table), UNROLLED),  # unrolled, the table's entries become constants of the code
        }
        compile_: Callable[[str], Any] = self.torch.cuda.jiterator._create_jit_fn
        self._least = compile_(LEAST_LOSS.format(**numbers))
        self._binary = compile_(BINARY_LOSS.format(**numbers))

    def __call__(self, a: Tensor, b: Tensor) -> Tensor:
        return self._least(a, b)

    def binary(self, *counts: Tensor) -> Tensor:
        return self._binary(*counts)


def cell_loss(table: NDArray[np.int64], device: str) -> CellLoss:
    """The loss of a cell for one softplus table."""
    return CellLoss(table) if device == "cpu" else CompiledCellLoss(table)


def summed_losses(
    agents: Sequence[Tensor], p_shape: tuple[int, ...], q_shape: tuple[int, ...], loss: CellLoss
) -> Tensor:
    """The loss of every pair of encoders (I, J) from both agents' counts, laid out as in `TorchCounter.operand`."""
    if p_shape[0] == q_shape[0] == 1:
        (_, I), (_, J) = p_shape, q_shape
        inner = [counts[:I, :J] for counts in agents]
        p, q, n = (
            [counts[at].double() for counts in agents]
            for at in ((slice(I), slice(J, J + 1)), (slice(I, I + 1), slice(J)), (slice(I, I + 1), slice(J, J + 1)))
        )
        if (fused := loss.binary(*inner, *p, *q, *n)) is not None:
            return fused
    return sum(loss(a, b) for a, b in zip(*(_cells(counts, p_shape, q_shape) for counts in agents)))


def _cells(counts: Tensor, p_shape: tuple[int, ...], q_shape: tuple[int, ...]) -> Iterator[Tensor]:
    """One agent's counts of every pair of values, value 0 by complement: N_s^2 matrices (I, J) of float64."""
    (U, I), (V, J) = p_shape, q_shape
    counts = counts[: U * I + 1, : V * J + 1].double()
    inner = counts[:-1, :-1].reshape(U, I, V, J)
    p, q, n = counts[:-1, -1].reshape(U, I, 1), counts[-1, :-1].reshape(V, 1, J), counts[-1, -1]
    yield n - p.sum(dim=0) - q.sum(dim=0) + inner.sum(dim=(0, 2))
    for u in range(U):
        yield p[u] - inner[u].sum(dim=1)
    for v in range(V):
        yield q[v] - inner[:, :, v].sum(dim=0)
        for u in range(U):
            yield inner[u, :, v]
