"""Studies: each a folder of spec (which runs), run (one run) and analysis (rows to table and picture).

A study is a module with `add_arguments(parser)` and `main(args)`, and one entry here: its name on the command line, its
module, and what it shows.
"""

STUDIES = {
    "table1": ("craftrl.reproduce.table1", "the paper's Table 1 beside ours: CRAFT and its two shortcuts"),
    "error-growth": ("craftrl.reproduce.error_growth", "mislabelled trajectories against h: CRAFT, recursive DRAFT"),
    "figures": ("craftrl.reproduce.figures", "the paper's three figures, drawn from real runs"),
    "efficiency": ("studies.efficiency", "accuracy against data: the paper's ERM, the chain, their limits"),
    "agents": ("studies.agents", "two to six agents at a fixed total number of trajectories"),
    "bounds": ("studies.bounds", "alpha, eta, nu: true, chosen from the data, or off by a factor of 2"),
    "worlds": ("studies.worlds", "trajectories needed in the combination lock and the multi-maze"),
    "pixels": ("studies.pixels", "CRAFT on images, beside what people use on videos today"),
    "robustness": ("studies.robustness", "broken assumptions, and whether label-free diagnostics notice"),
}
