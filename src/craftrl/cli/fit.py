"""`craftrl fit`: CRAFT on a dataset, or on recordings of several agents; the model in a file."""

from __future__ import annotations

import hashlib
import shutil
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from craftrl.cli.options import Bound, Count, Positive, Recordings, in_options, opt, refuse
from craftrl.errors import AssumptionWarning

if TYPE_CHECKING:
    from craftrl import CRAFT, TrajectoryDataset

LONG = 10  # minutes of a fit on a CPU from which on a user should know before
PER_PIXEL = 3e-6  # seconds for a pixel of a frame in a whole fit of images: 2 to 5 were measured on one core
KINDS = {"CoordinateOracle": "one entry of each observation", "NeuralOracle": "a network"}


Oracle = Literal["auto", "coordinates", "classifier", "network"]
Coupling = Literal["auto", "independent", "chain", "markov"]


def fit(
    *data: Annotated[str, opt("a dataset of craftrl import or collect, or one path per agent", required=True)],
    out: Annotated[str, opt("the model, such as model.safetensors")],
    force: Annotated[bool, opt("replace a model that is there already")] = False,
    store: Annotated[str | None, opt("where recordings go; by default beside the model: model.data")] = None,
    oracle: Annotated[Oracle, opt("what learns: one entry of x, boosted trees on features, or a network")] = "auto",
    values: Annotated[Positive | None, opt("coordinates: how many values an entry has")] = None,
    alpha: Annotated[Bound, opt("coordinates: least difference of the agents' log-odds of two successors")] = "auto",
    eta: Annotated[Bound, opt("coordinates: least share of one agent in the visits to a pair of states")] = "auto",
    nu: Annotated[Bound, opt("coordinates: least share of trajectories that visit a pair of states")] = "auto",
    coupling: Annotated[Coupling, opt("coordinates: independent is the paper's; markov needs the least data")] = "auto",
    relabel: Annotated[
        bool | None, opt("coordinates: read states off new encoders; by default yes", negative="--no-relabel")
    ] = None,
    stationary: Annotated[
        bool | None, opt("one encoder for all steps; by default unless coordinates learn", negative="--no-stationary")
    ] = None,
    find_start: Annotated[
        bool, opt("coordinates: trajectories begin in several states, as clips do: find them")
    ] = False,
    horizon: Annotated[Positive | None, opt("steps to learn from; by default those that enough reach")] = None,
    window: Annotated[
        Count | None, opt("long recordings: frames of a window; 0 for none; by default where recordings are few")
    ] = None,
    device: Annotated[str | None, opt("network: cpu, cuda or auto")] = None,
    epochs: Annotated[Positive | None, opt("network: passes over the data at most")] = None,
    seed: Annotated[Count | None, opt("network: of weights and minibatches")] = None,
    embedding: Annotated[Positive | None, opt("network: numbers of the embedding, by default 8")] = None,
    diagnose: Annotated[Count | None, opt("check by N refits on resampled data, and print each step's checks")] = None,
    ray: Annotated[
        str | None, opt("coordinates: count on the Ray cluster at HOST:PORT, auto (this machine's) or local")
    ] = None,
    recordings: Recordings = Recordings(),
) -> None:
    """Learn encoders of the controllable state from trajectories.

    With one path per agent, in any format of craftrl import, recordings are read into a dataset first, model.data. The
    same command again goes on from whatever was finished. Everything but DATA and --out may be left out: the data
    chooses, and what was chosen is printed with the reason.

    examples:
      craftrl fit alice/ bob/ --resize 64 --out model.safetensors
      craftrl fit data --out model.safetensors
      craftrl fit data --ray HOST:6379 --out model.safetensors
      the paper's algorithm to the letter, with bounds as craftrl theory assumptions gives them:
      craftrl fit data --alpha 1 --eta 1/5 --nu 5/32 --coupling independent --no-relabel --out model.safetensors
    """
    elsewhere = (
        "data",
        "out",
        "force",
        "store",
        "device",
        "diagnose",
        "ray",
        "recordings",
    )  # may differ from run to run
    settings = repr({name: value for name, value in locals().items() if name not in elsewhere})

    from craftrl import CRAFT, CoordinateOracle, TrajectoryDataset
    from craftrl.data.ranks import from_first, is_first_rank
    from craftrl.estimators.verdict import verdict
    from craftrl.oracles.finite import CountingOracle
    from craftrl.progress import doing, fit_bar

    given = {"device": device, "epochs": epochs, "seed": seed, "embedding": embedding}
    network = {name: value for name, value in given.items() if value is not None}
    no_network = network and oracle in ("coordinates", "classifier")
    refuse(
        (values and oracle != "coordinates", "--values is for coordinates; add --oracle coordinates, or leave it out."),
        (no_network, f"--{next(iter(network), '')} is for networks; add --oracle network, or leave it out."),
        (ray and oracle in ("classifier", "network"), "--ray is for coordinates, which are counted; leave it out."),
    )
    if device is not None:
        from craftrl import Training

        Training(device=device).to_device()  # raises where there is none
    model = CRAFT(
        oracle if values is None else CoordinateOracle(values),
        alpha=alpha,  # type: ignore[arg-type]  # the only text is "auto"
        eta=eta,  # type: ignore[arg-type]
        nu=nu,  # type: ignore[arg-type]
        coupling=coupling,
        relabel="auto" if relabel is None else relabel,
        stationary="auto" if stationary is None else stationary,
        horizon=horizon or "auto",
        window="auto" if window is None else window or None,
    )
    model.check_parameters()
    from_first(lambda: _there(out, force, settings))
    tau = TrajectoryDataset.open(from_first(lambda: _dataset(data, out, store, recordings)))
    tau.first_steps(horizon or 2)  # raises where there are fewer
    scratch = _choose(model, tau, network, ray, out)
    command = settings, from_first(tau.fingerprint)
    made = from_first(lambda: _there(out, force, *command))
    if made is None:
        with warnings.catch_warnings(), fit_bar(tau.H):
            warnings.simplefilter("ignore", AssumptionWarning)  # said in the verdict
            model.fit(tau, start="find" if find_start else None)
        model.data_["command"] = command
        if from_first(lambda: _there(out, force, *command) is None):  # or another one was quicker
            model.save(out, overwrite=force)
    else:  # the same command was stopped when this was written
        model = made
    if is_first_rank():
        shutil.rmtree(scratch, ignore_errors=True)
    findings = tuple(f"{kind}: " for kind in ("Warning", "Note"))  # which follow the verdict
    summary = [line for line in model.summary().split("\n") if not line.startswith(findings)]
    print("", in_options("\n".join(summary)), f"Written to {out}", "", sep="\n", flush=True)
    quick = isinstance(model.oracle_, CountingOracle)  # elsewhere each refit takes as long as a fit
    with doing("checking the states"):
        diagnosis = model.diagnose(tau, n_resamples=diagnose if diagnose is not None or quick else 0)
    said = verdict(model, diagnosis)
    if diagnose is not None:
        print(f"{diagnosis.table()}\n")
    print(f"Verdict: {said.level}. {said.found}\n{said.why}")
    for kind, sentences in (("Warning", said.warnings), ("Note", said.advice), ("Next", said.to_do)):
        for sentence in sentences:
            print(in_options(f"{kind}: {sentence}"))


def _there(out: str, force: bool, *command: str) -> CRAFT | None:
    """The model that lies at `out`, if this very command made it: with these settings and, where given, of this data.

    Raises, before any work is done, where nothing may be written.
    """
    from craftrl import load
    from craftrl.data import urls
    from craftrl.estimators.saving import check_model_path

    check_model_path(out, True)
    if force or not urls.exists(out):
        return None
    found = load(out)
    if tuple(getattr(found, "data_", {}).get("command", ()))[: len(command)] != command:
        check_model_path(out, False)
    return found


def _dataset(data: Sequence[str], out: str, store: str | None, recordings: Recordings) -> str:
    """The dataset to fit: the one that was given, or the one that the recordings are imported into."""
    from craftrl.arguments import is_url
    from craftrl.data.store import is_dataset

    if len(data) == 1 and (is_url(data[0]) or is_dataset(data[0]) or not Path(data[0]).exists()):
        for name, value in {**vars(recordings), "store": store}.items():
            option = f"--{name.replace('keys', 'key')} is for recordings that are imported"
            given = value not in (1, None, False, ())
            refuse((given, f"{option}; {data[0]} is a dataset already; leave it out, or import again."))
        return data[0]
    from craftrl.importing import import_data, inspect

    beside = f"{out.removesuffix('.safetensors')}.data"
    where = store or (Path(beside).name if is_url(out) else beside)
    import_data(data, where, **vars(recordings), progress=True)
    print(f"{in_options(str(inspect(where)))}\n", flush=True)
    return where


def _choose(model: CRAFT, tau: TrajectoryDataset, settings: Mapping[str, Any], ray: str | None, out: str) -> Path:
    """Give the model the oracle that was asked for, and say what it is; returned is where a stopped fit goes on."""
    from sklearn.base import clone

    from craftrl.arguments import is_url
    from craftrl.data.ranks import from_first, here
    from craftrl.estimators.choices import choose_oracle
    from craftrl.oracles.finite import CountingOracle

    _, world = here()
    oracle, chosen = choose_oracle(model.oracle, tau)
    network = type(oracle).__name__ == "NeuralOracle"
    why = f"since {chosen[0].why.rstrip('.')}" if model.oracle == "auto" else "as asked for"
    learner, where = f"{KINDS.get(type(oracle).__name__, 'boosted trees')}, {why}", ""
    other = f"what learns is {learner}; choose another --oracle."
    counted = isinstance(oracle, CountingOracle)
    refuse(
        (settings and not network, f"--{next(iter(settings), '')} is for networks; {other}"),
        (world > 1 and not network, f"{world} processes at once are for networks; {other}"),
        (ray is not None and not counted, f"--ray is for coordinates, which are counted; {other}"),
    )
    scratch = Path(out).with_name(f".{Path(out).name}.unfinished")
    scratch = Path(scratch.name) if is_url(out) else scratch
    if ray is not None:
        model.oracle, where = clone(oracle).set_params(ray=ray), f", counted on Ray ({ray})"
    if network:
        from craftrl import NeuralOracle, Training

        own = {name: value for name, value in settings.items() if name == "embedding"}
        training = Training(**{name: value for name, value in settings.items() if name not in own})
        part = hashlib.sha256(f"{from_first(tau.digest)} {training!r} {own or ''}".encode()).hexdigest()[:12]
        model.oracle = NeuralOracle(training=training.but(checkpoints=(scratch / part).absolute()), **own)
        device = training.to_device().type
        where = ", on the GPU" if device == "cuda" else f", on the {device.upper()}"
        where += f" of each of {world} ranks" if world > 1 else ""
    names = "" if tau.names == tuple(range(tau.K)) else f" ({', '.join(map(str, tau.names))})"
    counts, shape = " + ".join(map(str, tau.counts)), " x ".join(map(str, tau.obs_shape))
    print(f"Data: {counts} trajectories of {tau.K} agents{names}, {tau.H} steps, observations {shape}.")
    print(f"Learner: {learner}{where}.", flush=True)
    if where == ", on the CPU" and len(tau.obs_shape) == 3:
        rows, columns = tau.obs_shape[:2]
        minutes = PER_PIXEL * int(tau.lengths.sum()) * rows * columns / 60
        if minutes > LONG:
            sizes = [f for f in (2, 4) if min(rows, columns) / f >= 24]
            smaller = [f", {_in_words(minutes / f**2)} with --resize {columns // f}x{rows // f}" for f in sizes]
            print(f"Time: about {_in_words(minutes)}{''.join(smaller)}; less on a GPU.", flush=True)
    return scratch


def _in_words(minutes: float) -> str:
    return f"{minutes / 60:.1f} hours" if minutes > 90 else f"{max(1, round(minutes))} minutes"
