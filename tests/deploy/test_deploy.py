"""A fitted model where it is used: tables, a PyTorch module, an ONNX file, a video, a Gymnasium environment."""

import copy
import csv

import av
import gymnasium
import numpy as np
import onnxruntime
import pyarrow.parquet
import pytest
import torch
from PIL import ImageColor

import craftrl
from command_line import complaint
from command_line import craftrl as command_line
from craftrl import CRAFT, InvalidDataError, InvalidParameterError, NotFittedError
from craftrl.deploy import StateModule, StateObservation, export_onnx, render, write_states
from craftrl.deploy.video import COLOURS, rendered
from craftrl.envs import BitsExBMDP, collect
from craftrl.envs.gym import ExBMDPEnv
from craftrl.figures import WARM
from craftrl.oracles.network.encoder import NetworkEncoder
from shipped import data, model_of_images, model_with_five_states, random_head

WORLD = BitsExBMDP(horizon=4, n_features=6, seed=0)
TAU = data("images").tau


@pytest.fixture(scope="module")
def bits():
    return CRAFT().fit(collect(WORLD, WORLD.paper_policies(), 500, seed=0).tau)


@pytest.fixture(scope="module")
def video():
    assert len(np.unique(model_with_five_states().encode(frames_of(40)))) > 1
    return model_with_five_states()


def frames_of(n=5):
    return TAU.at(2)[:n]


# -- tables ------------------------------------------------------------------------------------------------------


STATES, AGENT = np.array([[0, 1, 2], [0, 1, -1]]), np.array([0, 1])
LINES = [(0, 0, 1, 0), (0, 0, 2, 1), (0, 0, 3, 2), (1, 1, 1, 0), (1, 1, 2, 1)]


def test_states_are_written_in_every_format(tmp_path):
    for name in ("s.parquet", "s.csv", "s.npz"):
        write_states(tmp_path / name, STATES, AGENT)
    table = pyarrow.parquet.read_table(tmp_path / "s.parquet")
    assert table.column_names == ["trajectory", "agent", "h", "state"]
    assert list(zip(*table.to_pydict().values())) == LINES
    lines = [",".join(map(str, line)) for line in LINES]
    assert (tmp_path / "s.csv").read_text().splitlines() == ["trajectory,agent,h,state", *lines]
    with np.load(tmp_path / "s.npz") as arrays:
        assert list(zip(*(column.tolist() for column in arrays.values()))) == LINES


def test_agents_may_have_names_and_observations_a_file_and_a_frame(tmp_path):
    where = {"file": ["a,b.mp4", "c.mp4"], "frame": [[0, 2, 4], [10, 12, 14]]}
    write_states(tmp_path / "s.csv", [[0, 1, 1], [0, 2, -1]], ["ann", "ben"], **where)
    with (tmp_path / "s.csv").open() as file:
        assert list(csv.reader(file)) == [
            ["trajectory", "agent", "file", "frame", "h", "state"],
            *(["0", "ann", "a,b.mp4", frame, h, s] for frame, h, s in ("010", "221", "431")),
            *(["1", "ben", "c.mp4", frame, h, s] for frame, h, s in (("10", "1", "0"), ("12", "2", "2"))),
        ]


# -- networks ----------------------------------------------------------------------------------------------------


def test_a_module_names_the_states_that_the_model_names(video):
    x = frames_of(40)
    module = StateModule(video)
    log_p = module(torch.from_numpy(x))
    assert torch.allclose(log_p.exp().sum(dim=1), torch.ones(40), atol=1e-5)
    assert np.array_equal(log_p.argmax(dim=1).numpy(), video.encode(x))


def test_training_a_module_leaves_the_model_alone(video):
    x = torch.from_numpy(frames_of())
    before = StateModule(video)(x).detach()
    module = StateModule(video)
    module(x)[:, 0].sum().backward()
    with torch.no_grad():
        for p in module.parameters():
            p.sub_(p.grad if p.grad is not None else 0)
    assert not torch.allclose(module(x), before)
    assert torch.equal(StateModule(video)(x), before)


def test_a_module_of_each_step():
    steps = model_of_images(stationary=False)
    x = frames_of()
    assert np.array_equal(StateModule(steps, h=2)(torch.from_numpy(x)).argmax(dim=1).numpy(), steps.encode(x, 2))


@pytest.fixture(scope="module")
def exported(video, tmp_path_factory):
    folder = tmp_path_factory.mktemp("onnx")
    export_onnx(video, folder / "encoder.onnx")
    assert [p.name for p in folder.iterdir()] == ["encoder.onnx"]  # weights inside, nothing beside it
    return folder / "encoder.onnx"


def test_an_onnx_file_runs_without_the_library_and_agrees(video, exported):
    session = onnxruntime.InferenceSession(str(exported), providers=["CPUExecutionProvider"])
    for n in (1, 37):
        x = frames_of(n)
        (log_p,) = session.run(["log_probabilities"], {"observations": x})
        assert np.array_equal(log_p.argmax(axis=1), video.encode(x))


def test_an_onnx_file_is_written_by_the_command_and_not_where_it_differs(video, exported, tmp_path, monkeypatch):
    other = copy.copy(video)
    trunk = video.encoder_.trunk
    other.encoder_ = NetworkEncoder(trunk, random_head(trunk.dim), torch.device("cpu"))  # other weights
    write = lambda module, x, path: path.write_bytes(exported.read_bytes())  # noqa: E731
    monkeypatch.setattr("craftrl.deploy.networks._export", write)
    monkeypatch.setattr(craftrl, "load", {"video": video, "other": other}.get)
    assert command_line("export video --out right.onnx", cwd=tmp_path) == "Written to right.onnx\n"
    assert "is there already" in complaint("export video --out right.onnx", cwd=tmp_path)
    assert "must give what the model gives" in complaint("export other --out wrong.onnx", cwd=tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["right.onnx"]


# -- videos ------------------------------------------------------------------------------------------------------


def test_a_video_shows_every_frame_the_state_and_what_decides(video, tmp_path):
    render(video, TAU, tmp_path / "states.mkv", [0, 50])
    with av.open(str(tmp_path / "states.mkv")) as container:
        shown = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    assert len(shown) == 2 * TAU.H
    pixels = TAU.obs_shape[0]
    scale = -(-256 // pixels)
    assert shown[0].shape == (pixels * scale + 30, 2 * pixels * scale, 3)
    seen = shown[0][: pixels * scale, : pixels * scale].reshape(pixels, scale, pixels, scale, 3).mean(axis=(1, 3))
    assert np.abs(seen - TAU.at(1)[0]).mean() < 8  # the codec loses a little
    assert shown[0][pixels * scale :].max() > 60  # text
    for h, frame in enumerate(rendered(video, TAU, [0]), start=1):
        half, below = frame[: pixels * scale], frame[pixels * scale :]
        colour = ImageColor.getrgb(COLOURS[video.encode(TAU.at(h, [0]), h)[0]])
        assert (below == colour).all(axis=-1).any()  # the state's own
        warm = (half[:, pixels * scale :] == WARM).all(axis=-1)
        assert 0 < warm.mean() < 0.5  # what decides most is orange, and not everything does


def test_frames_are_explained_together_as_each_by_itself(video):
    states = np.stack([video.encode(TAU.at(h), h) for h in range(1, TAU.H + 1)], axis=1)
    some = sorted({states[:, -1].tolist().index(state) for state in np.unique(states[:, -1])})
    assert len(some) > 1
    together = np.stack([*rendered(video, TAU, some)])
    alone = np.stack([frame for i in some for frame in rendered(video, TAU, [i])])
    assert np.abs(together.astype(int) - alone).max() <= 2  # what decides in a frame depends on no other frame
    scale, pixels = -(-256 // TAU.obs_shape[0]), TAU.obs_shape[0]
    seen = together[:, : scale * pixels : scale, : scale * pixels : scale]
    assert np.array_equal(seen, np.concatenate([TAU.episode(i) for i in some]))
    for frame, state in zip(together, states[some].ravel()):
        assert (frame[scale * pixels :] == ImageColor.getrgb(COLOURS[state])).all(axis=-1).any()


def test_frames_have_one_size_where_only_some_encoders_are_networks(tmp_path):
    """At h = 1 there is one state, and no network to say what decides: its picture is dark."""
    model = model_of_images(stationary=False)
    frames = list(rendered(model, TAU, [0]))
    assert len({frame.shape for frame in frames}) == 1
    rows, half = 256, frames[0].shape[1] // 2
    assert frames[0][:rows, half:].max() <= 255 // 3  # dimmed, and nothing is marked
    render(model, TAU, tmp_path / "states.gif", [0])
    with av.open(str(tmp_path / "states.gif")) as container:
        assert [(f.height, f.width) for f in container.decode(video=0)] == [frames[0].shape[:2]] * TAU.H


# -- environments ------------------------------------------------------------------------------------------------


def test_an_environment_shows_the_learned_state(bits):
    env = StateObservation(ExBMDPEnv(WORLD), bits)
    raw = ExBMDPEnv(WORLD)
    assert env.observation_space == gymnasium.spaces.Discrete(2)
    state, _ = env.reset(seed=3)
    x, _ = raw.reset(seed=3)
    for h in range(1, WORLD.H):
        assert state == bits.encode(x[None], h)[0]
        assert env.observation_space.contains(state)
        state, x = env.step(0)[0], raw.step(0)[0]


def test_an_environment_may_keep_what_it_showed(bits):
    env = StateObservation(ExBMDPEnv(WORLD), bits, keep=True)
    seen, _ = env.reset(seed=0)
    assert env.observation_space.contains({**seen, "state": np.int64(seen["state"])})
    assert seen["observation"].shape == bits.obs_shape_


class Endless(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 1, (6,), np.uint8)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return np.zeros(6, np.uint8), {}

    def step(self, action):
        return np.zeros(6, np.uint8), 0.0, False, False, {}


def test_episodes_longer_than_those_fitted_are_refused(bits):
    env = StateObservation(Endless(), bits)
    env.reset()
    for _ in range(3):
        env.step(0)
    with pytest.raises(InvalidDataError, match=r"at most 4 steps.*step 5 was reached"):
        env.step(0)


# -- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda bits, video, to: write_states(to / "s.txt", STATES, AGENT), r"or NAME.npz; .*s\.txt was given"),
        (lambda bits, video, to: write_states(to / "s.csv", STATES, AGENT[:1]), "one agent per trajectory"),
        (lambda bits, video, to: StateModule(bits, h=2), r"must be a network.*CoordinateEncoder at h = 2"),
        (lambda bits, video, to: StateModule(CRAFT()), "must be fitted first"),
        (lambda bits, video, to: StateModule(video)(torch.zeros(2, 3)), "must be a tensor of shape"),
        (lambda bits, video, to: StateModule(video)(None), "Observations must be a tensor of shape"),
        (lambda bits, video, to: render(video, TAU, to / "s.avi", [0]), r"NAME\.mp4 or NAME\.mkv or NAME\.gif"),
        (lambda bits, video, to: render(video, TAU, to / "s.gif", [80]), r"from 0 to 79, one at least; \[80\] was"),
        (lambda bits, video, to: render(video, TAU, to / "s.gif", [True]), r"from 0 to 79, one at least; \[True\]"),
        (lambda bits, video, to: render(bits, data("bits").tau, to / "s.gif", [0]), "needs images"),
        (
            lambda bits, video, to: StateObservation(ExBMDPEnv(BitsExBMDP(horizon=4, n_features=8)), bits),
            r"shape \(6,\); uint8 of shape \(8,\)",
        ),
    ],
)
def test_a_refusal_is_one_sentence_and_leaves_nothing(call, sentence, bits, video, tmp_path):
    with pytest.raises((InvalidDataError, InvalidParameterError, NotFittedError), match=sentence):
        call(bits, video, tmp_path)
    assert not list(tmp_path.iterdir())
