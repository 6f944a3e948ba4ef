"""`craftrl fit`: CRAFT on a dataset on disk, or on recordings of several agents; the model in a file."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from craftrl.arguments import natural, positive
from craftrl.cli.backend import add_backend_options, refuse_cluster_options
from craftrl.cli.parser import bound
from craftrl.cli.sources import add_import_options, import_options, refuse_import_options
from craftrl.data.places import Place, place

if TYPE_CHECKING:
    from craftrl import CRAFT
    from craftrl.cli.fit_plan import Plan
    from craftrl.diagnostics import Diagnosis

__all__ = ["add_arguments", "learner", "main"]

EXAMPLES = """\
examples:
  craftrl fit data.h5 --out model.safetensors
  craftrl fit data.h5 --alpha 1 --eta 1/5 --nu 5/32 --coupling independent --relabel no --out model.safetensors
  craftrl fit frames.h5 --oracle network --epochs 10 --stationary --out model.safetensors
  craftrl fit data.h5 --diagnose 10 --out model.safetensors
  craftrl fit alice/ bob/ --resize 64 --out model.safetensors
  craftrl fit shards --ray HOST:6379 --out model.safetensors

With one path per agent, in any format of craftrl import, recordings are read into a store first, model.data.h5. The
same command again goes on with that, or finds it done.

Everything but DATA and --out may be left out: the data chooses, and what was chosen is printed with the reason. The
second example is the paper's algorithm to the letter. craftrl theory assumptions computes alpha, eta and nu where the
true states are known."""

BOUNDS = {
    "alpha": "least difference of the agents' log-odds of two successors",
    "eta": "least share of one agent in the visits to a pair of states",
    "nu": "least share of trajectories that visit a pair of states",
}
RELABEL: dict[str, Any] = {"auto": "auto", "yes": True, "no": False}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "data", nargs="+", metavar="DATA", help="a store, as craftrl collect or import writes it, or one path per agent"
    )
    parser.add_argument("--out", required=True, type=place, metavar="FILE", help="the model, such as model.safetensors")
    parser.add_argument("--force", action="store_true", help="replace a model that is there already")
    parser.add_argument("--store", type=place, metavar="FILE", help="where recordings go (default: model.data.h5)")
    parser.add_argument(
        "--oracle",
        choices=["auto", "coordinates", "classifier", "network"],
        default="auto",
        help="what learns: one entry of x, boosted trees on features, a network on features or images (default: auto)",
    )
    parser.add_argument("--values", type=positive, metavar="N", help="coordinates: how many values an entry has")
    for name, meaning in BOUNDS.items():
        parser.add_argument(f"--{name}", type=bound, default="auto", help=f"{meaning}, or auto (default)")
    parser.add_argument(
        "--coupling",
        choices=["auto", "independent", "chain", "markov"],
        default="auto",
        help="independent is the paper's; the others choose all steps' encoders at once and need less data, markov the "
        "least",
    )
    parser.add_argument(
        "--relabel", choices=RELABEL, default="auto", help="read states off each encoder once it is trained (auto: yes)"
    )
    parser.add_argument(
        "--stationary",
        action=argparse.BooleanOptionalAction,
        help="one encoder for all steps, or one for each (default: one for all steps if observations are images)",
    )
    parser.add_argument(
        "--horizon", type=positive, metavar="H", help="steps to learn from (default: those that enough reach)"
    )
    parser.add_argument("--device", metavar="DEVICE", help="network: cpu, cuda or auto (default: auto)")
    parser.add_argument("--epochs", type=positive, metavar="N", help="network: passes over the data at most")
    parser.add_argument("--seed", type=natural, metavar="N", help="network: of weights and minibatches")
    parser.add_argument(
        "--diagnose",
        type=natural,
        metavar="N",
        help="print what speaks for and against the result, without ground truth, from N refits on resampled "
        "trajectories (the verdict at the end comes from 10 where they are quick; networks are checked without any)",
    )
    add_import_options(parser)
    add_backend_options(parser)
    parser.epilog = EXAMPLES


def main(args: argparse.Namespace) -> None:
    import shutil
    import warnings

    from craftrl import AssumptionWarning, TrajectoryDataset
    from craftrl.cli.fit_plan import planned
    from craftrl.cli.fit_progress import shown
    from craftrl.data.ranks import present, speaks
    from craftrl.estimators.saving import check_model_path

    present().from_first(lambda: check_model_path(args.out, args.force))
    if args.ray is None:
        refuse_cluster_options(args)
    store = present().from_first(lambda: _store(args))
    plan = planned(args, TrajectoryDataset.open(store))
    model = learner(args, plan)
    print(*plan.lines, sep="\n", flush=True)
    with warnings.catch_warnings(), shown(plan.tau.H):
        warnings.simplefilter("ignore", AssumptionWarning)  # said in the verdict
        if args.ray is not None and plan.scratch is not None:  # a network
            from craftrl.distributed.train_on_ray import fit_networks_on_ray

            address = None if args.ray == "local" else args.ray
            fit_networks_on_ray(model, store, address=address, workers=args.workers, horizon=plan.tau.H)
        else:
            model.fit(plan.tau)
    model.save(args.out, overwrite=args.force)
    if plan.scratch is not None and speaks():
        shutil.rmtree(plan.scratch.parent, ignore_errors=True)
    print(f"\n{model.summary()}\nWritten to {args.out}\n")
    diagnosis = model.diagnose(plan.tau, n_resamples=_refits(model) if args.diagnose is None else args.diagnose)
    if args.diagnose is not None:
        print(f"{diagnosis}\n")
    print(_verdict(model, diagnosis))


def learner(args: argparse.Namespace, plan: Plan) -> CRAFT:
    """The estimator that was asked for."""
    from craftrl import CRAFT

    model = CRAFT(
        plan.oracle,
        **{name: getattr(args, name) for name in BOUNDS},
        coupling=args.coupling,
        relabel=RELABEL[args.relabel],
        stationary=plan.stationary,
    )
    model.check_parameters()
    return model


def _refits(model: CRAFT) -> int | None:
    """As many as the oracle wants where they are quick, in a finite class; elsewhere each is as dear as a fit."""
    from craftrl.oracles.finite import CountingOracle

    return None if isinstance(model.oracle_, CountingOracle) else 0


def _verdict(model: CRAFT, diagnosis: Diagnosis) -> str:
    """What a user should know at the end: how many states, how far to trust them, what to record more of."""
    from craftrl.report.guarantee import guarantee
    from craftrl.report.verdict import verdict

    found = verdict(model, diagnosis, guarantee(model))
    lines = [f"Verdict: {found.level}. {found.found}", found.why]
    lines += [f"Warning: {warning}" for warning in found.warnings]
    lines += [f"Note: {note}" for note in found.advice]
    return "\n".join(lines)


def _store(args: argparse.Namespace) -> Place:
    """The dataset to fit: the one that was given, or the one that the recordings are imported into."""
    from craftrl.data.places import source
    from craftrl.importing.recognise import is_store

    first = source("DATA", args.data[0])
    if len(args.data) == 1 and (is_store(first) or not first.exists()):
        refuse_import_options(args)
        return first
    from craftrl.importing import import_data, inspect

    store = args.store or args.out.with_name(f"{args.out.name.removesuffix('.safetensors')}.data.h5")
    import_data(args.data, store, **import_options(args), progress=True)
    print(f"{inspect(store)}\n")
    return store
