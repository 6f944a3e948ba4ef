"""Studies: each a folder of spec (which runs), run (one run) and analysis (rows to table and picture).

A study is a module with `add_arguments(parser)` and `main(args)`, and one entry here: its name on the command line, its
module, and what it shows.
"""

STUDIES = {
    "table1": ("craftrl.experiments.table1", "the paper's Table 1 beside ours: CRAFT and its two shortcuts"),
    "error-growth": ("craftrl.experiments.error_growth", "mislabelled trajectories against h: CRAFT, recursive DRAFT"),
    "figures": ("craftrl.experiments.figures", "the paper's three figures, drawn from real runs"),
    "worlds": ("craftrl.experiments.worlds", "trajectories needed in the combination lock and the multi-maze"),
}
