"""What `craftrl fit` picks before it learns: how many steps, what learns, on which device; and where it can go on."""

from __future__ import annotations

import argparse
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from craftrl.data.dataset import TrajectoryDataset
from craftrl.data.fingerprint import whole_digest
from craftrl.data.horizon import first_steps, well_reached
from craftrl.data.places import Place
from craftrl.data.ranks import present
from craftrl.errors import InvalidParameterError
from craftrl.estimators.choices import choose_oracle, one_encoder_for
from craftrl.oracles.base import Oracle

__all__ = ["Plan", "planned"]

NETWORK = ("device", "epochs", "seed")  # options that only networks have


@dataclass(frozen=True)
class Plan:
    """tau         what is learned from
    oracle      what learns
    stationary  whether one encoder serves all steps
    scratch     where a killed fit goes on; None where there is nothing that would take long to do again
    lines       the same in words
    """

    tau: Any
    oracle: Oracle
    stationary: bool
    scratch: Path | None
    lines: tuple[str, ...]


def planned(args: argparse.Namespace, tau: TrajectoryDataset) -> Plan:
    """From what was asked for and what the data is like."""
    H = well_reached(tau) if args.horizon is None else args.horizon
    cut = first_steps(tau, H)
    oracle, why = _oracle(args, cut)
    images = bool(one_encoder_for(oracle, cut).value)
    stationary = images if args.stationary is None else args.stationary
    scratch = None
    where = ""
    ranks = present()
    if ranks.world > 1 and not _is_network(oracle):
        raise InvalidParameterError(
            f"Several processes at once are for networks; {ranks.world} were started, and what learns is {why}; run "
            "the command without torchrun, or add --oracle network."
        )
    if _is_network(oracle):
        scratch = _scratch(args.out, cut, oracle)
        oracle = _going_on_in(oracle, scratch)
        where = ", by ranks that Ray starts" if args.ray else _device(oracle)
        where += f" of each of {ranks.world} ranks" if ranks.world > 1 else ""
    elif args.ray is not None:
        oracle, where = _counting_on(args.ray, oracle, args.workers), f", counted on Ray ({args.ray})"
    steps = f"all {tau.H} steps" if tau.H == H else f"the first {H} of {tau.H} steps, which enough of all agents reach"
    known = "" if cut.names == tuple(range(cut.K)) else f" ({', '.join(map(str, cut.names))})"
    shape = " x ".join(map(str, cut.obs_shape))
    free = [name for name in ("alpha", "eta", "nu") if getattr(args, name) == "auto"]
    return Plan(
        cut,
        oracle,
        stationary,
        scratch,
        (
            f"Data: {' + '.join(map(str, cut.counts))} trajectories of {cut.K} agents{known}, {steps}, observations "
            f"{shape}.",
            f"Learner: {why}{where}; {_encoders(stationary, args.stationary is None and images)}.",
            f"Bounds: {', '.join(free)} chosen from the data." if free else "Bounds: as given.",
        ),
    )


def _encoders(stationary: bool, since_images: bool) -> str:
    if not stationary:
        return "an encoder for each step"
    return "one encoder for all steps" + ", as images mean the same at every step (or --no-stationary)" * since_images


def _oracle(args: argparse.Namespace, tau: Any) -> tuple[Oracle, str]:
    """The oracle, with the options that were given for it, and in words why."""
    if args.values is not None:
        if args.oracle != "coordinates":
            raise InvalidParameterError("--values is for coordinates; add --oracle coordinates, or leave it out.")
        from craftrl import CoordinateOracle

        return CoordinateOracle(args.values), f"entries with {args.values} values, as asked for"
    oracle, choices = choose_oracle(args.oracle, tau)
    settings = {name: getattr(args, name) for name in NETWORK if getattr(args, name) is not None}
    if settings and not _is_network(oracle):
        raise InvalidParameterError(f"--{next(iter(settings))} is for networks; add --oracle network, or leave it out.")
    if settings:
        from craftrl import NeuralOracle, Training

        oracle = NeuralOracle(training=Training(**settings))
    kind = {"CoordinateOracle": "one entry of each observation", "NeuralOracle": "a network"}
    what = kind.get(type(oracle).__name__, "boosted trees")
    asked = "as asked for" if args.oracle != "auto" else choices[0].why.rstrip(".")
    return oracle, f"{what}, {asked if asked.startswith('as') else 'since ' + asked}"


def _counting_on(address: str, oracle: Oracle, workers: int | None) -> Oracle:
    """The same oracle, counting on a cluster."""
    from sklearn.base import clone

    from craftrl.oracles.finite import CountingOracle

    if not isinstance(oracle, CountingOracle):
        raise InvalidParameterError(
            "--ray is for coordinates, which are counted, and for networks; boosted trees learn on this machine; leave "
            "it out, or add --oracle network."
        )
    if workers is not None:
        raise InvalidParameterError("--workers is for networks; every core of the cluster counts; leave it out.")
    on_ray: Oracle = clone(oracle).set_params(ray=address)
    return on_ray


def _is_network(oracle: Any) -> bool:
    return type(oracle).__name__ == "NeuralOracle"


def _device(oracle: Any) -> str:
    device = _training(oracle).to_device().type
    return ", on the GPU" if device == "cuda" else f", on the {device.upper()}"


def _training(oracle: Any) -> Any:
    from craftrl import Training

    return oracle.training or Training()


def _scratch(out: Place, tau: TrajectoryDataset, oracle: Any) -> Path:
    """A hidden folder beside the model, one for each dataset and way of training; in the present folder for a URL."""
    data = present().from_first(lambda: whole_digest(tau))
    key = hashlib.sha256(f"{data} {oracle!r}".encode()).hexdigest()[:12]
    name = f".{out.name}.unfinished"
    return (out.with_name(name) if isinstance(out, Path) else Path(name)) / key


def _going_on_in(oracle: Any, scratch: Path) -> Any:
    from sklearn.base import clone

    return clone(oracle).set_params(training=_training(oracle).but(checkpoints=scratch.absolute()))
