"""The commands that make one call of the library and print what comes of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any

from craftrl.cli.options import (
    Count,
    Counts,
    Data,
    Environment,
    Force,
    Model,
    Number,
    Positive,
    Recordings,
    World,
    in_options,
    opt,
)
from craftrl.errors import InvalidDataError, InvalidParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

AT_ONCE = 2**26  # bytes of new recordings that are held
Key = tuple[str, str, int]  # an episode: its agent, source and start
Table = Annotated[str, opt("NAME.parquet, NAME.csv or NAME.npz")]


def import_(
    *agents: Annotated[str, opt("one file or folder per agent, or minari:NAME", required=True)],
    out: Annotated[str, opt("the dataset, a new folder")],
    recordings: Recordings = Recordings(),
) -> None:
    """Read recordings of several agents, in any known format, into one dataset.

    One file or folder per agent: videos, folders of frames, NPY or NPZ files, CSV or Parquet tables, Minari and LeRobot
    v3 datasets, or datasets of craftrl's own. Tables with a column `agent` hold several agents. Actions are kept aside,
    where no learner reads them. Stopped at any point, the same command goes on.

    examples:
      craftrl import alice/ bob/ --out data
      craftrl import alice/ bob/ --resize 64 --grey --stride 4 --out data
      craftrl import games/ --boundaries episodes.csv --out data
    """
    from craftrl.importing import import_data, inspect

    import_data(agents, out, **vars(recordings), progress=True)
    print(in_options(str(inspect(out))))


def inspect(
    data: Data,
    /,
    *,
    sheet: Annotated[str | None, opt("the contact sheet, PNG; by default beside DATA: data.sheet.png")] = None,
    no_sheet: Annotated[bool, opt("draw nothing")] = False,
    pairs: Annotated[bool, opt("compare the agents, two at a time, before any learning")] = False,
    seed: Annotated[Count, opt("which trajectories --pairs holds out")] = 0,
    force: Force = False,
) -> None:
    """What a dataset holds, and what may be wrong with it.

    Prints agents, episodes, lengths, shapes and warnings, and draws frames of every agent into a contact sheet. With
    --pairs it also says how different the agents' data are, which pairs are worth comparing, and where data is too
    little; that takes seconds, and with images and many agents about a minute.

    examples:
      craftrl inspect data
      craftrl inspect data --pairs --no-sheet
    """
    from craftrl.arguments import is_url
    from craftrl.importing import inspect as look

    beside = f"{PurePath(data).name if is_url(data) else PurePath(data)}.sheet.png"
    picture = None if no_sheet else sheet or beside
    found = look(data, picture, overwrite=force or sheet is None)  # beside DATA lies the sheet of an earlier look
    print(in_options(str(found)))
    if picture is not None:
        print(f"contact sheet: {picture}")
    if pairs:
        from craftrl.diagnostics import compare_agents

        print(compare_agents(data, seed=seed, progress=True))


def collect(
    *,
    n: Annotated[Positive, opt("trajectories per agent")],
    out: Annotated[str, opt("the dataset, a new folder")],
    seed: Annotated[Count, opt("of the trajectories")] = 0,
    workers: Annotated[Positive, opt("processes, with --env")] = 1,
    where: Environment = Environment(),
) -> None:
    """Sample action-free trajectories of several agents, in a world of this library or in a Gymnasium environment.

    Latent states and actions, which no learner may see, lie in files of their own beside the frames. Stopped at any
    point, the same command goes on.

    The environment of --env must have discrete actions. Two agents act in it, each with preferences that are the
    other's turned round, and episodes have 10 steps unless --horizon says otherwise. Where FUNCTION returns a
    craftrl.envs.GymWorld instead, the agents, the horizon and the true states are the world's own.

    examples:
      craftrl collect --world bits --n 1000 --out data
      craftrl collect --world pixels --size 3 --walkers 2 --horizon 6 --n 2000 --out frames
      craftrl collect --env my_module:make_env --horizon 12 --n 500 --out frames
    """
    from craftrl.envs import record

    print(f"{record(*where.made(), n, out, seed, workers=workers, progress=True).tau}\nWritten to {out}")


def evaluate(
    model: Model,
    data: Data,
    /,
    *,
    truth: Annotated[bool, opt("compare with the true states in DATA, as craftrl collect writes them")] = False,
) -> None:
    """Apply learned encoders to trajectories, and compare with the truth.

    With --truth: the share of states that are right at each step under the best relabelling; the same in each true
    state by itself, as a mean over states and in the worst one; and what naming one state at every step would score.
    Without: how the trajectories are spread over the states at each step; or, of a model with one encoder for all
    steps, how the frames of each agent are.

    examples:
      craftrl evaluate model.safetensors data --truth
    """
    import numpy as np

    from craftrl import TrajectoryDataset, load
    from craftrl.data import read_true_states
    from craftrl.evaluation import accuracy_by_step, count_visits, state_accuracies_by_step, state_summary

    learned, tau = load(model), TrajectoryDataset.open(data)
    states = learned.transform(tau)
    if not truth and hasattr(learned, "encoder_"):
        sizes = (tau.K, learned.n_states_total_)
        visits = count_visits(np.repeat(tau.agent, states.shape[1]), states.ravel(), sizes=sizes)
        print("state    frames  share of each agent's:", *(f"{name!s:>8}" for name in tau.names))
        for state, (n, of_agents) in enumerate(zip(visits.sum(axis=0), visits.T / visits.sum(axis=1))):
            print(
                f"{state:5d}  {n:8d}  {'':22}",
                *(f"{share:{max(8, len(str(name)))}.1%}" for share, name in zip(of_agents, tau.names)),
            )
        return
    if not truth:
        print("   h  states  share of trajectories in each")
        for h, s_h in enumerate(states.T, start=1):
            visits = count_visits(s_h)
            shares = " ".join(f"{share:.1%}" for share in visits / max(visits.sum(), 1))
            print(f"{h:4d}  {int((visits > 0).sum()):6d}  {shares}")
        return
    true = read_true_states(data)
    accuracy, chance = accuracy_by_step(states, true), accuracy_by_step(np.zeros_like(true), true)
    single = state_accuracies_by_step(states, true, min(10, len(true) // 10))  # states with fewer visits do not count
    print("   h  accuracy  by state     worst    chance")
    for h, (overall, of_states, one) in enumerate(zip(accuracy, single, chance), start=1):
        mean, worst = (of_states.mean(), of_states.min()) if len(of_states) else (np.nan, np.nan)
        print(f"{h:4d}  {overall:8.2%}  {mean:8.2%}  {worst:8.2%}  {one:8.2%}")
    H, found = len(accuracy), state_summary(single)
    print(f"mean over h = 1..{H}: {accuracy.mean():.2%}, over h = 2..{H}: {accuracy[1:].mean():.2%}")
    print(f"single states, h = 2..{H}: mean {found['state_mean']:.2%}, worst {found['state_worst']:.2%}")
    print(f"chance, one state named at every step: mean over h = 2..{H}: {chance[1:].mean():.2%}")


def encode(
    model: Model,
    /,
    *data: Annotated[str, opt("a dataset, or one file or folder per agent", required=True)],
    out: Table,
    force: Force = False,
) -> None:
    """Write the learned state of every observation to a table.

    DATA is a dataset, or new recordings: one file or folder per agent, read, cut and resized as those that the model
    was fitted to. The table has one line for each observation: trajectory, agent, file, frame (from 0), h (from 1) and
    state. .npz has the columns as arrays.

    examples:
      craftrl encode model.safetensors model.data --out states.parquet
      craftrl encode model.safetensors alice/ carol/ --out states.csv
    """
    import numpy as np

    from craftrl import TrajectoryDataset, load
    from craftrl.arguments import is_url
    from craftrl.data.store import is_dataset
    from craftrl.deploy.tables import check_table, write_states

    check_table(out, force)
    learned = load(model)
    if len(data) == 1 and (is_url(data[0]) or is_dataset(data[0])):
        tau = TrajectoryDataset.open(data[0])
        reading, states, agent = tau.notes.get("reading"), learned.transform(tau), [tau.names[k] for k in tau.agent]
        file, start = list(tau.source or ()), [] if tau.start is None else tau.start.tolist()
    else:
        reading = learned.data_.get("reading", {})
        most = None if hasattr(learned, "encoder_") else len(learned.encoders_)  # else of the steps that have one
        rows: dict[Key, list[NDArray[Any]]] = {}  # the states of each episode, part by part
        for some in _some_at_a_time(data, reading, learned.obs_shape_, whole=most is not None):
            x = [np.concatenate(parts)[:most] for parts in some.values()]
            for name, part, states in zip(some, x, learned.transform(x)):
                rows.setdefault(name, []).append(states[: len(part)])
        agent, file, start = (list(column) for column in zip(*rows))
        states = np.array(list(zip_longest(*map(np.concatenate, rows.values()), fillvalue=-1))).T
    if reading is None:  # collected, or written by a program
        write_states(out, states, agent, overwrite=force)
    else:
        frame = np.array(start)[:, None] + reading.get("stride", 1) * np.arange(states.shape[1])
        write_states(out, states, agent, file=file, frame=frame, overwrite=force)
    of = "one trajectory" if len(states) == 1 else f"{len(states)} trajectories"
    print(f"{int((states >= 0).sum())} states of {of} written to {out}")


def _some_at_a_time(
    data: Sequence[str], reading: dict[str, Any], shape: tuple[int, ...], whole: bool
) -> Iterator[dict[Key, list[NDArray[Any]]]]:
    """The frames of new recordings, of several episodes at a time, those of long ones in parts unless `whole`."""
    from craftrl.importing import read_episodes
    from craftrl.progress import progress_bar

    held: dict[Key, list[NDArray[Any]]] = {}
    n_bytes = 0
    bar = {"desc": "encode", "unit": "episode", "delay": 0.5, "leave": False}
    for episode in progress_bar(iterable=read_episodes(data, **reading), **bar):
        if episode.x.shape[1:] != shape:
            raise InvalidDataError(
                f"New recordings must look like those fitted, {shape}; {episode.source} of {episode.agent} has "
                f"{episode.x.shape[1:]}; convert it, or fit with --resize."
            )
        held.setdefault((episode.agent, episode.source, episode.start), []).append(episode.x)
        n_bytes += episode.x.nbytes
        if n_bytes > AT_ONCE and not (whole and episode.goes_on):
            yield held
            held, n_bytes = {}, 0
    if held:
        yield held


def render(
    model: Model,
    data: Data,
    /,
    *,
    out: Annotated[str, opt("NAME.mp4, NAME.mkv or NAME.gif")],
    trajectories: Annotated[Counts, opt("which, counted from 0; by default the first of each agent")] = (),
    fps: Annotated[Positive, opt("frames a second")] = 4,
    force: Force = False,
) -> None:
    """Draw the learned state into a video of trajectories.

    Left: what is seen. Right: the pixels that decide on the state, if the encoder is a network. Below: agent, file and
    frame, and the state.

    examples:
      craftrl render model.safetensors frames --out states.mp4
      craftrl render model.safetensors frames --trajectories 0 7 600 --fps 8 --out states.gif
    """
    import numpy as np

    from craftrl import TrajectoryDataset, load
    from craftrl.deploy import render as draw

    tau = TrajectoryDataset.open(data)
    chosen = trajectories or np.unique(tau.agent, return_index=True)[1].tolist()
    draw(load(model), tau, out, chosen, fps, overwrite=force)
    print(f"Written to {out}: trajectories {', '.join(map(str, chosen))}")


def actions(
    model: Model,
    data: Data,
    /,
    *,
    n: Annotated[Positive | None, opt("how many actions; by default as few as the moves need")] = None,
    stochastic: Annotated[bool, opt("an action may lead from one state to several")] = False,
    out: Table | None = None,
    force: Force = False,
) -> None:
    """Write the latent action of every transition to a table.

    A latent action is a number that moves of different states share. The table has one line for each transition:
    trajectory, agent, h, state, successor, action (-1: unknown), certainty, and the group of states within which
    numbers of actions mean the same. What this rests on is printed, with whether it holds on this data.

    examples:
      craftrl actions model.safetensors data --out actions.csv
      craftrl actions model.safetensors data --n 4 --stochastic --out actions.parquet
    """
    import numpy as np

    from craftrl import TrajectoryDataset, load
    from craftrl.deploy.tables import check_table, latent_action_columns, write_table
    from craftrl.planning import StateGraph, find_latent_actions

    if out is not None:
        check_table(out, force)
    learned, tau = load(model), TrajectoryDataset.open(data)
    states = learned.transform(tau)
    moves = StateGraph.from_model(learned, tau, states=states)
    latent = find_latent_actions(moves, n=n, deterministic=not stochastic)
    print(in_options(str(latent)))
    if out is not None:
        columns = latent_action_columns(states, np.array(tau.names)[tau.agent], moves, latent)
        write_table(out, columns, overwrite=force)
        print(f"{len(columns['h'])} transitions of {tau.n} trajectories written to {out}")


def export(
    model: Model,
    /,
    *,
    out: Annotated[str, opt("NAME.onnx")],
    h: Annotated[Positive | None, opt("the step, if the model has an encoder for each")] = None,
    force: Force = False,
) -> None:
    """Write a network's encoder to an ONNX file.

    The file takes "observations" (n, ...), as they were recorded, and gives "log_probabilities" (n, states); the state
    is the most likely one. It is compared with the model in onnxruntime before it gets its name.

    examples:
      craftrl export model.safetensors --out encoder.onnx
    """
    from craftrl import load
    from craftrl.deploy import export_onnx

    export_onnx(load(model), out, h, overwrite=force)
    print(f"Written to {out}")


def report(
    model: Model,
    data: Data | None = None,
    /,
    *,
    out: Annotated[str, opt("NAME.html")],
    diagnose: Annotated[
        Count | None,
        opt("refits for the verdict; by default 10 where quick, 3 for classifiers, 0 for networks"),
    ] = None,
    force: Force = False,
) -> None:
    """Write a page on a model: verdict, states in pictures, checks, every number.

    With DATA, which must be what the model was fitted to, the report also shows what each state looks like, how each
    agent moves, and a diagnosis. The page needs no network.

    examples:
      craftrl report model.safetensors data --out report.html
    """
    from craftrl import load
    from craftrl.progress import doing
    from craftrl.report import write_report

    if diagnose is not None and data is None:
        raise InvalidParameterError("--diagnose needs the data that the model was fitted to; give DATA too.")
    title = PurePath(model).name.encode(errors="backslashreplace").decode()  # a name may be no text
    with doing("checking the model and drawing its states"):
        write_report(load(model), out, data, title=title, n_resamples=diagnose, overwrite=force)
    print(f"Written to {out}")


def assumptions(
    *,
    data: Annotated[str | None, opt("a dataset with true states, as craftrl collect writes it")] = None,
    world: World = World(),
) -> None:
    """alpha, eta, nu and nu', and the states that attain them.

    With --world: population values, for infinitely many trajectories of its agents. With --data: of the very data at
    hand, as the paper assumes them.

    examples:
      craftrl theory assumptions --world bits
      craftrl theory assumptions --data data
    """
    from craftrl import TrajectoryDataset
    from craftrl.data import read_true_states
    from craftrl.paper import empirical_assumptions, population_assumptions

    if (world.world is None) == (data is None):
        raise InvalidParameterError("Give either --world or --data, which has true states.")
    if data is None:
        print(population_assumptions(*world.made()))
        return
    tau = TrajectoryDataset.open(data)
    print(empirical_assumptions(tau.agent, read_true_states(data), lengths=tau.lengths))


def sample_size(
    *,
    epsilon_0: Annotated[Number, opt("errors allowed in each state")] = 0.05,
    delta: Annotated[Number, opt("probability of failure")] = 0.05,
    trajectories: Annotated[Positive | None, opt("which epsilon_0 do N in all guarantee?")] = None,
    class_size: Annotated[Positive | None, opt("encoders per step; for bits 2 M")] = None,
    states: Annotated[Positive | None, opt("N_s; by default the world's, or 2")] = None,
    alpha: Annotated[Number | None, opt("taken from the world unless given, as are the other bounds")] = None,
    eta: Number | None = None,
    nu: Number | None = None,
    nu_prime: Number | None = None,
    world: World = World(),
) -> None:
    """How much data the theorem asks for, or what it promises.

    These are worst-case constants: in the paper's world CRAFT works with a thousand trajectories per agent.

    examples:
      craftrl theory sample-size --world bits --epsilon-0 0.05 --delta 0.05
      craftrl theory sample-size --alpha 1 --eta 1/5 --nu 5/32 --nu-prime 1/2 --horizon 30 --class-size 256
      craftrl theory sample-size --world bits --trajectories 10000
    """
    from craftrl.paper import guaranteed_epsilon, population_assumptions
    from craftrl.paper import sample_size as theorem

    bounds: dict[str, Any] = {"alpha": alpha, "eta": eta, "nu": nu, "nu_prime": nu_prime}
    H = world.horizon
    if world.world is not None:
        tables, policies = world.made()
        known = population_assumptions(tables, policies)
        bounds = {name: getattr(known, name).value if value is None else value for name, value in bounds.items()}
        H = tables.H
        states = states or max(tables.n_states(h) for h in range(1, H + 1))
        class_size = class_size or (2 * tables.obs_shape[0] if world.world == "bits" else None)
    needed = {**bounds, "horizon": H, "class_size": class_size}
    if missing := [f"--{name.replace('_', '-')}" for name, value in needed.items() if value is None]:
        raise InvalidParameterError(f"The theorem needs {', '.join(missing)} too; give them, or a --world.")
    problem = {"delta": delta, "H": H, "class_size": class_size, "N_s": states or 2, **bounds}
    if trajectories is None:
        print(theorem(epsilon_0=epsilon_0, **problem))
        return
    epsilon = guaranteed_epsilon(trajectories, **problem)
    promise = "nothing" if epsilon is None else f"epsilon_0 = {epsilon:.4g} with probability 1 - {delta:g}"
    print(f"For {trajectories} trajectories the theorem guarantees {promise}.")


COMMANDS = (import_, inspect, collect, evaluate, encode, render, actions, export, report)
THEORY = (assumptions, sample_size)
