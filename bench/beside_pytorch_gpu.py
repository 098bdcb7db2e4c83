#!/usr/bin/env python3
"""norma and PyTorch on one GPU, one after the other row by row, with the targets of each row: one table.

    python3 bench/beside_pytorch_gpu.py transformers --norma build/dist-cuda/norma/bin/norma
    python3 bench/beside_pytorch_gpu.py families --match U-Net

A row is a model. norma runs it in a process of its own (`norma bench --device cuda`), in every variant that the table names;
then PyTorch does, in every way that is listed (bench/pytorch_gpu.py, bench/pytorch_gpu_families.py). The best variant and the
best peer make the ratio. The results are written after every row to OUT/cuda-TABLE-<time>.json with date, card and commit, so
that a table that is cut off keeps what it has. Exit status: 0, whatever was reached; 2 where nothing was measured.
"""

import argparse
import dataclasses
import datetime
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent


@dataclasses.dataclass(frozen=True)
class Row:
    name: str  # of norma's first variant, without the precision
    unit: str  # what a step consumes
    variants: tuple = ("bf16",)  # what stands behind the name
    peer: tuple = ()  # the program of the peer and its arguments
    # Targets; the first three as the tables of docs/performance.md have them.
    rate: float = 0  # units a second
    times: float = 0  # the best peer's rate
    milliseconds: float = 0
    times_row: tuple = ()  # another row of this table, and how many times its rate
    memory: float = 0  # of the best peer's
    gib: float = 0
    first: float = 0  # seconds until the first step is done

    def norma_names(self):
        return [f"gpu step/{self.name} {variant}" for variant in self.variants]


def gpu(*arguments):
    return ("pytorch_gpu.py", "--part", *arguments)


def family(match):
    return ("pytorch_gpu_families.py", "--match", match)


SMALL = "12 layers d=128 T=128 B=16"
DEEP = "1000 layers d=256 T=128 B=32 deepnorm"
GPT2 = "GPT-2 124M T=1024 B=32"
STREAMS = ("bf16", "stream bf16")
TABLES = {
    "transformers": [
        Row(SMALL, "tokens", peer=gpu("small"), rate=1.5e6),
        Row(f"{SMALL} x64", "tokens", STREAMS, gpu("members"), rate=10e6, first=2),
        Row(GPT2, "tokens", (*STREAMS, "lean bf16"), gpu("gpt2"), times=1.2, memory=0.8),
        Row(DEEP, "tokens", ("bf16", "lean bf16", "stream bf16", "lean stream bf16"), gpu("deep"), rate=32e3, gib=23,
            first=5),
    ],
    "families": [
        Row("ResNet-18 32x32 B=256", "images", peer=family("ResNet-18"), times=1.3, first=2),
        Row("ResNet-20 32x32 B=128", "images", peer=family("ResNet-20"), times=1.3, first=2),
        Row("ResNet-110 pre 32x32 B=128", "images", peer=family("ResNet-110"), times=1.3, first=2),
        Row("ViT d=192 L=12 p=4 32x32 B=256", "images", peer=family("ViT"), times=1.3, first=2),
        Row("DiT d=384 L=12 p=4 32x32 B=256", "images", peer=family("DiT"), times=1.3, first=2),
        Row("U-Net base 64 32x32 B=128", "images", peer=family("U-Net"), times=1.3, first=2),
        Row("GCN d=64 L=32 of Cora's size", "nodes", ("tf32",), family("GCN"), times=1.3, milliseconds=2.5, first=2),
        Row("ResNet-20 32x32 B=128 x32", "images", times_row=("ResNet-20 32x32 B=128", 8), first=2),
        Row("GCN d=64 L=32 of Cora's size x64", "nodes", ("tf32",), times_row=("GCN d=64 L=32 of Cora's size", 8), first=2),
    ],
}


def json_of(command, limit):
    """What a command prints as JSON; a text instead where it fails or takes too long."""
    print(f"  $ {' '.join(map(str, command))}", file=sys.stderr, flush=True)
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return f"took more than {limit:g} s"
    except OSError as problem:
        return str(problem)
    try:
        return json.loads(run.stdout)
    except ValueError:
        lines = run.stderr.strip().splitlines() or ["no output"]
        return f"ended with {run.returncode}: {lines[-1][:200]}"


def values_by_variant(results, prefixes):
    """{prefix: {what: value}} of entries named PREFIX/what."""
    found = {prefix: {} for prefix in prefixes}
    for entry in results:
        head, _, what = entry["name"].rpartition("/")
        if head in found:
            found[head][what] = entry["value"]
    return found


def peers_of(results, name, unit):
    """{how: {what: value}} of entries named gpu step/NAME .../what/how."""
    found = {}
    for entry in results:
        head, what, how = entry["name"].rsplit("/", 2)
        if head.startswith(f"gpu step/{name}"):
            found.setdefault(how, {})["rate" if what == unit else what] = entry["value"]
    return {how: values for how, values in found.items() if "rate" in values}


def judged(row, ours, peers, rates):
    """The targets of a row, each with what was reached; `rates` has those of the rows before."""
    best = max(ours.values(), key=lambda values: values["rate"])
    peer = max(peers.values(), key=lambda values: values["rate"], default=None)
    targets = []

    def add(what, target, reached, ratio):
        targets.append({"what": what, "target": target, "reached": reached, "of target": ratio})

    if row.rate:
        add(f"{row.unit}/s", row.rate, best["rate"], best["rate"] / row.rate)
    if row.milliseconds:
        add("ms", row.milliseconds, best["step"], row.milliseconds / best["step"])
    if row.times and peer:
        add("times the best peer", row.times, best["rate"] / peer["rate"], best["rate"] / peer["rate"] / row.times)
    if row.times_row and row.times_row[0] in rates:
        times = best["rate"] / rates[row.times_row[0]]
        add(f"times {row.times_row[0]}", row.times_row[1], times, times / row.times_row[1])
    memory = min(values["memory"] for values in ours.values())
    gib = row.gib or (row.memory and peer and row.memory * peer["memory"])
    if gib:
        add("GiB, of the variant with least", gib, memory, gib / memory)
    if row.first:
        add("s to the first step", row.first, best["first step"], row.first / best["first step"])
    return targets


def measured(row, options, rates):
    entry = {"row": row.name, "norma": {}, "peers": {}, "targets": [], "failed": []}
    limits = {}
    for name in row.norma_names():
        report = json_of([options.norma, "bench", "--device", "cuda", "--json", "--match", name, "--seconds",
                          str(options.seconds)], options.limit)
        if isinstance(report, str):
            entry["failed"].append({"name": name, "problem": report})
            continue
        limits = report["limits"]
        values = values_by_variant(report["results"], [name])[name]
        if row.unit in values:
            entry["norma"][name.removeprefix("gpu step/")] = {"rate": values.pop(row.unit), **values}
    if row.peer and not options.no_peers:
        program, *arguments = row.peer
        report = json_of([sys.executable, HERE / program, *arguments], options.peer_limit)
        if isinstance(report, str):
            entry["failed"].append({"name": " ".join(row.peer), "problem": report})
        else:
            entry["torch"] = report["torch"]
            entry["failed"] += report["failed"]
            entry["peers"] = peers_of(report["results"], row.name, row.unit)
    if entry["norma"]:
        rates[row.name] = max(values["rate"] for values in entry["norma"].values())
        entry["targets"] = judged(row, entry["norma"], entry["peers"], rates)
    return entry, limits


def print_entry(entry, unit):
    for kind in ("norma", "peers"):
        for name, values in entry[kind].items():
            extra = ", ".join(f"{what} {values[what]:.3g}" for what in ("memory", "first step") if what in values)
            label = name if kind == "norma" else f"  PyTorch, {name}"
            print(f"{label:66s} {values['rate']:12,.0f} {unit}/s  ({extra})")
    for target in entry["targets"]:
        print(f"    {target['what']}: {target['reached']:.4g}, target {target['target']:.4g}: {target['of target']:.2f}")
    for failure in entry["failed"]:
        print(f"    failed: {failure['name']}: {failure['problem']}")
    sys.stdout.flush()


def output_of(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip().splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=sorted(TABLES))
    parser.add_argument("--match", default="", help="only rows with this text in their name")
    parser.add_argument("--norma", default=HERE.parent / "build/cuda/bin/norma", type=pathlib.Path)
    parser.add_argument("--commit", default="", help="that norma was built from, where git cannot tell")
    parser.add_argument("--seconds", type=float, default=0.2, help="time per measurement")
    parser.add_argument("--limit", type=float, default=60, help="seconds that one row of norma may take")
    parser.add_argument("--peer-limit", type=float, default=240, help="seconds that the peers of one row may take")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--out", default=HERE / "results", type=pathlib.Path)
    options = parser.parse_args()
    rows = [row for row in TABLES[options.table] if options.match in row.name]
    if not rows:
        parser.error(f"no row of {options.table} has {options.match!r} in its name")
    now = datetime.datetime.now(datetime.timezone.utc)
    target = options.out / f"cuda-{options.table}-{now:%Y-%m-%d-%H%M%S}.json"
    table = {
        "what": f"{options.table} on one GPU: norma, then PyTorch, row by row",
        "date": f"{now:%Y-%m-%d}",
        "card": output_of("nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"),
        "commit": options.commit or output_of("git", "-C", str(HERE), "rev-parse", "--short", "HEAD"),
        "command": " ".join(["bench/beside_pytorch_gpu.py", *sys.argv[1:]]),
        "limits": {},
        "rows": [],
    }
    rates = {}
    for row in rows:
        entry, limits = measured(row, options, rates)
        table["limits"] = table["limits"] or limits
        table["rows"].append(entry)
        print_entry(entry, row.unit)
        if rates:
            target.write_text(json.dumps(table, indent=1) + "\n")
    if not rates:
        sys.exit(2)
    print(f"results written to {target}", file=sys.stderr)


if __name__ == "__main__":
    main()
