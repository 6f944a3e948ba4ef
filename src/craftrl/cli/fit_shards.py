"""`craftrl fit --backend ray`: the same fit, counted where the shards are."""

from __future__ import annotations

import argparse
import warnings

from craftrl.cli.backend import parts_shown, shards_of, workers_of
from craftrl.cli.fit import learner
from craftrl.cli.fit_plan import planned
from craftrl.cli.fit_progress import shown
from craftrl.cli.sources import refuse_import_options
from craftrl.distributed import fit_on_shards
from craftrl.distributed.dataset import ShardedData
from craftrl.errors import AssumptionWarning, InvalidParameterError

__all__ = ["fit"]


def fit(args: argparse.Namespace) -> None:
    """What fails, fails before anything is written; the model is written whole, at the end."""
    folder = shards_of(args.data)
    refuse_import_options(args)
    _refuse_one_machine(args)
    with workers_of(args) as executor, warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)  # said in the summary, step by step
        with parts_shown("shards"):
            plan = planned(args, ShardedData(folder, executor))
        model = learner(args, plan)
        print(*plan.lines, f"Workers: {executor.workers}, of one core each, by Ray.", sep="\n", flush=True)
        with shown(plan.tau.H):
            fit_on_shards(model, plan.tau, executor)
    model.save(args.out, overwrite=args.force)
    print(
        f"\n{model.summary()}\nWritten to {args.out}\n\nThe states of the trajectories stay with the shards; "
        f"craftrl encode {args.out} {folder} --backend ray --out states writes them."
    )


def _refuse_one_machine(args: argparse.Namespace) -> None:
    """Options of a fit whose data one machine holds."""
    for name in ("store", "diagnose"):
        if getattr(args, name) is not None:
            raise InvalidParameterError(
                f"--{name} is for data that one machine holds; --backend ray was given; leave one of them out."
            )
    if args.oracle == "classifier":
        raise InvalidParameterError(
            "--backend ray counts, for which --oracle must be coordinates, or trains a network; classifier was given; "
            "fit that on one machine."
        )
