"""The paper's table, error growth and figures, and what every study is run with.

study         `Study`, the record that every study fills in, and its command
catalogue     which studies there are: the paper's here, the others in the folder `studies` of a clone
runner        runs a sweep, one small row on disk for every run
folder        results folders
statistics    means over seeds

table1, error_growth, figures      the paper's own: spec (which runs), run (one run), report, picture
"""
