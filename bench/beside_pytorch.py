#!/usr/bin/env python3
"""norma and PyTorch measured in turns, so that both see the same machine; the ratio is the median over the rounds.

    /usr/bin/python3 bench/beside_pytorch.py --match layer --match step

Each round measures PyTorch (bench/pytorch_cpu.py), then norma (norma bench), each text of --match for itself. A ratio of
one round says little on a machine shared with others; the table shows the lowest and the highest beside the median.
Results go to bench/results/beside-pytorch-<time>.json.
"""

import argparse
import datetime
import json
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def measured(command):
    run = subprocess.run(command, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nended with {run.returncode}: {run.stderr.strip()}")
    report = json.loads(run.stdout)
    return report, {entry["name"]: entry for entry in report["results"]}


def summary(values):
    return {"median": statistics.median(values), "lowest": min(values), "highest": max(values)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--match", action="append", required=True, help="text in the name of what is measured")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.3, help="time per measurement")
    parser.add_argument("--norma", default=ROOT / "build/release/bin/norma")
    parser.add_argument("--out", default=ROOT / "bench/results", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("--rounds: at least one")
    ours, theirs, units = {}, {}, {}
    for round_ in range(arguments.rounds):
        print(f"\rround {round_ + 1} of {arguments.rounds}", end="", file=sys.stderr, flush=True)
        for match in arguments.match:
            options = ["--match", match, "--seconds", str(arguments.seconds)]
            torch, peer = measured([sys.executable, ROOT / "bench/pytorch_cpu.py", *options])
            norma, own = measured([arguments.norma, "bench", "--json", *options])
            for name in peer.keys() & own.keys():
                units[name] = own[name]["unit"]
                ours.setdefault(name, []).append(own[name]["value"])
                theirs.setdefault(name, []).append(peer[name]["value"])
    print(file=sys.stderr)
    if not ours:
        sys.exit(f"nothing that both measure has {' or '.join(map(repr, arguments.match))} in its name")
    results = [{"name": name, "unit": units[name], "rounds": len(values), "norma": summary(values),
                "pytorch": summary(theirs[name]), "ratio": summary([a / b for a, b in zip(values, theirs[name])])}
               for name, values in sorted(ours.items())]
    width = max(len(entry["name"]) for entry in results)
    print(f"{'':{width}}  {'norma':>10}  {'PyTorch':>10}  {'ratio':>6}  lowest to highest")
    for entry in results:
        ratio = entry["ratio"]
        print(f"{entry['name']:{width}}  {entry['norma']['median']:10.4g}  {entry['pytorch']['median']:10.4g}  "
              f"{ratio['median']:5.2f}x  {ratio['lowest']:.2f} to {ratio['highest']:.2f}  {entry['unit']}")
    now = datetime.datetime.now(datetime.timezone.utc)
    target = arguments.out / f"beside-pytorch-{now:%Y-%m-%d-%H%M%S}.json"
    about = {key: norma[key] for key in ("norma", "cores", "instruction_set")}
    target.write_text(json.dumps({"date": f"{now:%Y-%m-%dT%H:%M:%SZ}", **about, "torch": torch["torch"],
                                  "threads": torch["threads"], "results": results}, indent=2) + "\n")
    print(f"results written to {target}", file=sys.stderr)


if __name__ == "__main__":
    main()
