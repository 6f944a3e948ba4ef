"""Studies: each a folder of spec (which runs), run (one run) and analysis (rows to table and picture).

A study is a module with `add_arguments(parser)` and `main(args)`, and one entry here: its name on the command line, its
module, and what it shows.
"""

STUDIES = {
    "table1": ("craftrl.experiments.table1", "the paper's Table 1 beside ours: CRAFT and its two shortcuts"),
    "error-growth": ("craftrl.experiments.error_growth", "mislabelled trajectories against h: CRAFT, recursive DRAFT"),
    "figures": ("craftrl.experiments.figures", "the paper's three figures, drawn from real runs"),
    "efficiency": ("craftrl.experiments.efficiency", "accuracy against data: the paper's ERM, the chain, their limits"),
    "agents": ("craftrl.experiments.agents", "two to six agents at a fixed total number of trajectories"),
    "bounds": ("craftrl.experiments.bounds", "alpha, eta, nu: true, chosen from the data, or off by a factor of 2"),
    "worlds": ("craftrl.experiments.worlds", "trajectories needed in the combination lock and the multi-maze"),
    "pixels": ("craftrl.experiments.pixels", "CRAFT on images, beside what people use on videos today"),
    "robustness": ("craftrl.experiments.robustness", "broken assumptions, and whether label-free diagnostics notice"),
}
