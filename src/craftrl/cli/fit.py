"""`craftrl fit`: CRAFT on a dataset on disk, or on recordings of several agents; the model in a folder."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from craftrl.cli.parser import bound
from craftrl.cli.sources import add_import_options, import_options, refuse_import_options
from craftrl.errors import InvalidParameterError
from craftrl.reproduce.arguments import natural, positive

__all__ = ["add_arguments", "main"]

EXAMPLES = """\
examples:
  craftrl fit data.h5 --out model
  craftrl fit data.h5 --alpha 1 --eta 1/5 --nu 5/32 --coupling independent --relabel no --out model
  craftrl fit frames.h5 --oracle network --epochs 10 --stationary --out model
  craftrl fit data.h5 --diagnose 10 --out model
  craftrl fit alice/ bob/ --resize 64 --out model

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
NETWORK = {
    "device": "cpu, cuda or auto",
    "epochs": "passes over the data at most",
    "seed": "of weights and minibatches",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "data", nargs="+", metavar="DATA", help="a store, as craftrl collect or import writes it, or one path per agent"
    )
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="the model, a folder")
    parser.add_argument("--force", action="store_true", help="replace a model that is there already")
    parser.add_argument("--store", type=Path, metavar="FILE", help="where recordings go (default: DIR.data.h5)")
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
        choices=["auto", "independent", "chain", "posterior", "markov"],
        default="auto",
        help="independent is the paper's; the others choose all steps' encoders at once and need less data, markov the "
        "least: its states say all that there is to know of the next ones",
    )
    parser.add_argument(
        "--relabel", choices=RELABEL, default="auto", help="read states off each encoder once it is trained (auto: yes)"
    )
    parser.add_argument("--stationary", action="store_true", help="one encoder for all steps")
    for name, meaning in NETWORK.items():
        kind: Any = {"device": str, "epochs": positive, "seed": natural}[name]
        parser.add_argument(f"--{name}", type=kind, metavar=name.upper(), help=f"network: {meaning}")
    parser.add_argument(
        "--diagnose",
        type=natural,
        metavar="N",
        help="ask the data, without ground truth, whether to trust the result: N refits on resampled trajectories",
    )
    add_import_options(parser)
    parser.epilog = EXAMPLES


def main(args: argparse.Namespace) -> None:
    import warnings

    from craftrl import CRAFT, AssumptionWarning
    from craftrl.estimators.saving import check_target

    check_target(args.out, args.force)
    model = CRAFT(
        _oracle(args),
        **{name: getattr(args, name) for name in BOUNDS},
        coupling=args.coupling,
        relabel=RELABEL[args.relabel],
        stationary=args.stationary,
    )
    data = _store(args)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)  # said in the summary, step by step
        model.fit(data)
    model.save(args.out, overwrite=args.force)
    print(f"{model.summary()}\nWritten to {args.out}")
    if args.diagnose is not None:
        print(f"\n{model.diagnose(data, n_resamples=args.diagnose)}")


def _store(args: argparse.Namespace) -> Path:
    """The dataset to fit: the one that was given, or the one that the recordings are imported into."""
    from craftrl.importing.recognise import is_store

    first = Path(args.data[0])
    if len(args.data) == 1 and (is_store(first) or not first.exists()):
        refuse_import_options(args)
        return first
    from craftrl.importing import import_data, inspect

    store = args.store or args.out.with_name(f"{args.out.name}.data.h5")
    import_data(args.data, store, **import_options(args), progress=True)
    print(f"{inspect(store)}\n")
    return store


def _oracle(args: argparse.Namespace) -> Any:
    """The oracle by name, or made with the options that were given for it."""
    settings = {name: getattr(args, name) for name in NETWORK if getattr(args, name) is not None}
    if settings and args.oracle != "network":
        raise InvalidParameterError(f"--{next(iter(settings))} is for networks; add --oracle network, or leave it out.")
    if args.values is not None and args.oracle != "coordinates":
        raise InvalidParameterError("--values is for coordinates; add --oracle coordinates, or leave it out.")
    if settings:
        from craftrl import NeuralOracle, Training

        return NeuralOracle(training=Training(**settings))
    if args.values is not None:
        from craftrl import CoordinateOracle

        return CoordinateOracle(args.values)
    return args.oracle
