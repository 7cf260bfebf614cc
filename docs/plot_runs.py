"""Plots runs over each other: receptions and p99 per second, and the latency distribution.

    python3 plot_runs.py runs/monday runs/tuesday runs/wednesday -o runs.png

Needs matplotlib. Reads timeseries.csv, e2e.hgrm and summary.json of each directory.
"""

import argparse
import csv
import json
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def measured_seconds(run):
    """Time since the start of the measured phase, receptions per second, p99 in milliseconds."""
    with open(run / "timeseries.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["phase"] == "measure"]
    start = float(rows[0]["start_s"])
    return (
        [float(row["start_s"]) - start for row in rows],
        [float(row["received_per_s"]) for row in rows],
        [float(row["e2e_p99_us"] or "nan") / 1000 for row in rows],
    )


def distribution(run):
    """1/(1-percentile) and the value in milliseconds, for each line of e2e.hgrm."""
    lines = (run / "e2e.hgrm").read_text().splitlines()
    cells = [line.split() for line in lines if line and not line.startswith("#")]
    points = [(float(c[3]), float(c[0])) for c in cells if len(c) == 4 and c[0][0].isdigit()]
    return [x for x, _ in points], [y for _, y in points]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("-o", "--output", type=Path, default=Path("runs.png"))
    arguments = parser.parse_args()

    figure, (rate, p99, latency) = plt.subplots(3, 1, figsize=(9, 11), layout="constrained")
    for run in arguments.runs:
        record = json.loads((run / "summary.json").read_text())
        label = f"{run.name} ({record['verdict']})"
        seconds, received, p99_ms = measured_seconds(run)
        rate.plot(seconds, received, label=label)
        p99.plot(seconds, p99_ms, label=label)
        latency.plot(*distribution(run), label=label)
    rate.set(xlabel="s", ylabel="received per second", ylim=(0, None))
    p99.set(xlabel="s", ylabel="p99 of the second, ms", ylim=(0, None))
    latency.set(xscale="log", xlabel="percentile", ylabel="end to end, ms", ylim=(0, None))
    latency.set_xticks([2, 10, 100, 1000, 10000], ["50 %", "90 %", "99 %", "99.9 %", "99.99 %"])
    rate.legend()
    figure.savefig(arguments.output, dpi=120)


if __name__ == "__main__":
    main()
