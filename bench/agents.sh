#!/usr/bin/env bash
# The same total load without agents and over 1, 2 and 4 agents of this machine, interleaved, and
# what differs: nothing should.
# Usage: bench/agents.sh [FOLDER]; REPEATS, HOLD and TACHO (the program) from the environment.
set -euo pipefail
out=${1:-target/agents}
tacho=${TACHO:-target/release/tacho}
repeats=${REPEATS:-5}
hold=${HOLD:-20s}

for rate in 5000 10000 20000; do
    for ((repeat = 1; repeat <= repeats; repeat++)); do
        for agents in 0 1 2 4; do
            choice=()
            [ "$agents" = 0 ] || choice=(--agents "local:$agents")
            # An invalid run is kept, and the comparison leaves it out.
            "$tacho" run symmetric --var "target_throughput=$rate" --hold "$hold" "${choice[@]}" \
                --dir "$out/$rate/$agents-$repeat" >/dev/null || true
        done
    done
    sides=()
    for agents in 0 1 2 4; do
        runs=$(printf "$out/$rate/$agents-%d," $(seq "$repeats"))
        sides+=("${runs%,}")
    done
    "$tacho" compare "${sides[@]}" --dir "$out/$rate/comparison" || true
done
