"""Algorithm 2, read out line by line: lists, sets, fractions, one sample at a time. Two agents.

This is the truth that the library is compared with. It is slow on purpose and shares no code with the library: only
the conventions that the paper leaves open are the library's (docs/algorithm.md): log-losses are integers in units of
2^-30 nats; G_h holds the indicator of every set of values of every encoder; Line 46 tries every one-to-one
relabelling; ties go to the first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import permutations, product

NAT = 2**30
TIE = Fraction(1, 10**9)
Phi = Sequence[Callable[[object], int]]


@dataclass
class Literal:
    """What Algorithm 2 leaves behind: sets of trajectory indices, as in the paper, and what it decided."""

    xi_values: list[float]
    D_A: list[list[set[int]]] = field(default_factory=list)  # D_A[h-1][s]
    D_B: list[list[set[int]]] = field(default_factory=list)
    f: list[tuple[int, int, dict[tuple[int, int], int]]] = field(default_factory=list)
    merges: list[list[tuple[int, int, Fraction, bool]]] = field(default_factory=list)
    encoders: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)  # index, state_of; from h = 2

    def label(self, h: int, agent: int, index: int) -> int:
        """The state of one trajectory at h, -1 for none."""
        sets = (self.D_A if agent == 0 else self.D_B)[h - 1]
        found = [s for s, members in enumerate(sets) if index in members]
        assert len(found) <= 1, "a trajectory is in one state at most"
        return found[0] if found else -1


def craft(tau_A, tau_B, alpha: float, eta: float, nu: float, classes: Callable[[int], Phi], N_s: int) -> Literal:
    H = max(map(len, [*tau_A, *tau_B]))
    alpha = min(1, alpha)  # Line 1
    xi, n_xi = alpha / 4, math.ceil(8 * math.log(1 / eta - 1) / alpha - 1e-9)  # Line 2
    Xi = [-n_xi * xi / 2 + j * xi for j in range(n_xi + 1)]  # Line 4 (Line 3's eta is not used below)
    out = Literal(Xi)
    out.D_A.append([set(range(len(tau_A)))])  # Line 5
    out.D_B.append([set(range(len(tau_B)))])
    for h in range(1, H):  # Line 7
        out.D_A.append([])  # Line 8
        out.D_B.append([])
        merges: list[tuple[int, int, Fraction, bool]] = []
        f = minimise_cluster_loss(tau_A, tau_B, h, classes(h), classes(h + 1), N_s, Xi)  # Lines 9-10
        out.f.append(f)
        q_thresh = h * nu / (8 * H)  # Line 11
        n = sum(len(x) > h for x in [*tau_A, *tau_B])  # those that are not over: in the paper, all
        n_clusters = 0
        for s_pred in range(len(out.D_A[h - 1])):  # Line 12
            merged_already: set[int] = set()  # Line 13
            S_new: list[tuple[set[int], set[int]]] = []  # Line 14
            pairs = [(0, i) for i in sorted(out.D_A[h - 1][s_pred]) if len(tau_A[i]) > h]  # Line 15
            pairs += [(1, i) for i in sorted(out.D_B[h - 1][s_pred]) if len(tau_B[i]) > h]
            pred_succ: list[list[tuple[int, int]]] = [[] for _ in Xi]  # Line 16
            for agent, i in pairs:
                x = (tau_A, tau_B)[agent][i]
                pred_succ[value(f, x[h - 1], x[h], classes(h), classes(h + 1))].append((agent, i))
            j = 0  # Line 17
            while j <= n_xi:  # Line 18
                if len(pred_succ[j]) >= q_thresh * n:  # Line 19
                    light = [k for k in range(j + 1, n_xi + 1) if len(pred_succ[k]) < q_thresh * n]
                    j_end = light[0] if light else n_xi  # Line 20
                    D_new = [p for k in range(max(0, j - 1), j_end + 1) for p in pred_succ[k]]  # Line 21
                    new_A = {i for agent, i in D_new if agent == 0}
                    new_B = {i for agent, i in D_new if agent == 1}
                    new_state = True  # Line 22
                    for s in range(len(out.D_A[h])):  # Line 23
                        if s in merged_already:
                            continue
                        D_s = observations(tau_A, tau_B, out.D_A[h][s], out.D_B[h][s], h)  # Line 24
                        loss = separate(observations(tau_A, tau_B, new_A, new_B, h), D_s, classes(h + 1), N_s)
                        merges.append((n_clusters, s, loss, loss > Fraction(1, 2)))
                        if loss > Fraction(1, 2):  # Line 26
                            out.D_A[h][s] |= new_A  # Line 27
                            out.D_B[h][s] |= new_B  # Line 28
                            merged_already.add(s)  # Line 29
                            new_state = False  # Line 30
                            break  # Line 31
                    if new_state:  # Lines 34-38
                        S_new.append((new_A, new_B))
                    n_clusters += 1
                    j = j_end + 2  # Line 39
                else:
                    j = j + 1  # Line 41
            for new_A, new_B in S_new:  # Line 44
                out.D_A[h].append(new_A)
                out.D_B[h].append(new_B)
        out.merges.append(merges)
        D = [observations(tau_A, tau_B, A, B, h) for A, B in zip(out.D_A[h], out.D_B[h])]
        out.encoders.append(train_encoder(D, classes(h + 1), N_s))  # Line 46
    return out


def softplus(z: float) -> int:
    return round((max(z, 0) + math.log1p(math.exp(-abs(z)))) * NAT)


def minimise_cluster_loss(tau_A, tau_B, h, Phi_h: Phi, Phi_next: Phi, N_s: int, Xi: list[float]):
    """Line 10. The cells of a table do not interact, so each takes its best value over all of Xi."""
    best = None
    for i, phi in enumerate(Phi_h):
        for j, phi_next in enumerate(Phi_next):
            cells: dict[tuple[int, int], list[int]] = {uv: [0, 0] for uv in product(range(N_s), repeat=2)}
            for agent, tau in enumerate((tau_A, tau_B)):
                for x in tau:
                    if len(x) > h:
                        cells[phi(x[h - 1]), phi_next(x[h])][agent] += 1
            total, table = 0, {}
            for cell, (a, b) in cells.items():
                losses = [a * softplus(-c) + b * softplus(c) for c in Xi]
                table[cell] = losses.index(min(losses))
                total += min(losses)
            if best is None or total < best[0]:
                best = (total, i, j, table)
    assert best is not None
    return best[1:]


def value(f, x_h, x_next, Phi_h: Phi, Phi_next: Phi) -> int:
    i, j, table = f
    return table[Phi_h[i](x_h), Phi_next[j](x_next)]


def observations(tau_A, tau_B, A: set[int], B: set[int], h: int) -> list:
    return [tau_A[i][h] for i in sorted(A)] + [tau_B[i][h] for i in sorted(B)]


def separate(D_new: list, D_s: list, Phi_next: Phi, N_s: int) -> Fraction:
    """Line 25: the least loss over g(x) = 1[phi(x) in V]."""
    best = Fraction(2)
    for phi in Phi_next:
        new, state = [phi(x) for x in D_new], [phi(x) for x in D_s]
        for bits in product((0, 1), repeat=N_s):
            loss = Fraction(sum(1 - bits[v] for v in new), len(new)) + Fraction(sum(bits[v] for v in state), len(state))
            best = min(best, loss)
    return best


def train_encoder(D: list[list], Phi_next: Phi, N_s: int) -> tuple[int, tuple[int, ...]]:
    """Line 46: encoder index, and which state each of its values stands for."""
    if not D:
        return 0, tuple(range(N_s))
    options = []
    for i, phi in enumerate(Phi_next):
        share = [[Fraction(sum(phi(x) == v for x in D_s), len(D_s)) for v in range(N_s)] for D_s in D]
        if len(D) <= N_s:
            for values in permutations(range(N_s), len(D)):
                state_of = {v: s for s, v in enumerate(values)}
                options.append((sum(share[s][v] for v, s in state_of.items()), i, state_of))
        else:
            for states in permutations(range(len(D)), N_s):
                state_of = dict(enumerate(states))
                options.append((sum(share[s][v] for v, s in state_of.items()), i, state_of))
    most = max(option[0] for option in options)
    _, i, state_of = next(option for option in options if option[0] >= most - TIE)
    free = iter(range(len(D), len(D) + N_s))
    return i, tuple(state_of[v] if v in state_of else next(free) for v in range(N_s))
