#!/bin/sh
# CRAFT's rows that take a GPU, all made anew at once on one card:  sh studies/on_one_gpu.sh OUT [RECORDINGS]
# Rows are in OUT/NAME, what a study says in OUT/NAME.log. Given again, it goes on from what was finished.
out=${1:?a folder for the results} data=${2:-results/games-data}
mkdir -p "$out"

study() {  # NAME, and what is given to `craftrl reproduce`
    name=$1; shift
    OMP_NUM_THREADS=1 python -m craftrl reproduce "$@" --device cuda --out "$out/$name" >>"$out/$name.log" 2>&1 &
    jobs="$jobs $name:$!"
}

full="pixels --preset full --techniques craft"
study rooms13 pixels --preset rooms13 --techniques craft --seeds 3
study rooms pixels --preset rooms --techniques craft --seeds 3
study walkers $full --walkers 0 4 8 --n 5000 --seeds 3
study few $full --walkers 4 --n 500 1000 --seeds 10
study n $full --walkers 4 --n 2000 20000 --seeds 3
study games games --data "$data" --techniques craft --seeds 3
for cut in clips unequal; do
    study $cut-3x3 pixels --preset long --techniques craft --cut $cut --seeds 3
    study $cut-4x4 $full --walkers 4 --n 5000 --cut $cut --seeds 3
    study $cut-games games --data "$data" --techniques craft --cut $cut --seeds 3
done
for world in pixels rooms minigrid freeway; do
    study planning-$world planning --full --worlds $world --data "$data" --techniques craft --seeds 2 --labels 0 5 10 20 50 100 200 500
done
study ablations ablations

failed=0
for job in $jobs; do
    if wait "${job##*:}"; then echo "${job%:*}: done"; else echo "${job%:*}: failed, see its log"; failed=1; fi
done
exit $failed
