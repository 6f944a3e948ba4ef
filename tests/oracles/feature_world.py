"""A small world of feature vectors, in which networks learn within a second."""

import numpy as np

from craftrl import TrajectoryDataset
from craftrl.envs.collection import Collection, GroundTruth, sample_latent_paths
from craftrl.envs.pixels import PixelsExBMDP


def feature_data(n, horizon=4, seed=0, n_agents=2):
    """Cells of a 2 x 2 grid as one-hot vectors, beside those of two walkers, all with Gaussian noise."""
    world = PixelsExBMDP(horizon, 2, 2, seed=0)
    rng = np.random.default_rng(seed)
    paths = [sample_latent_paths(world, policy, n, rng) for policy in world.policies(n_agents, 1.5)]
    states = np.concatenate([s for s, _ in paths])
    e = world.sample_noise(len(states), rng)
    x = np.empty((len(states), horizon, 12))
    for h in range(horizon):
        factors = np.column_stack([states[:, h], e[:, :2]])
        x[:, h] = np.eye(4)[factors].reshape(-1, 12) + rng.normal(0, 0.1, (len(states), 12))
        e = world.step_noise(e, h + 1, rng)
    tau = TrajectoryDataset.from_arrays([x[k * n : (k + 1) * n] for k in range(n_agents)])
    return Collection(tau, GroundTruth(states, np.concatenate([a for _, a in paths])))


class Positions(PixelsExBMDP):
    """Rows and columns of the agent's cell and of the walkers' cells, with Gaussian noise of an eighth of a cell."""

    obs_dtype = np.dtype(np.float64)

    def __init__(self, horizon=6, size=3, n_walkers=3, seed=0):
        super().__init__(horizon, size, n_walkers, seed=seed)
        self.obs_shape = (2 * (n_walkers + 1),)

    def emit(self, s_h, e_h, h, rng):
        cells = np.column_stack([s_h, e_h[:, : self.n_walkers]])
        return self.plan.cells[cells].reshape(len(s_h), -1) + rng.normal(0, 1 / 8, (len(s_h), *self.obs_shape))
