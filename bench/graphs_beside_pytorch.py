#!/usr/bin/env python3
"""Training steps of graph networks on Cora, norma beside PyTorch eager, in turns; wall and CPU seconds of a step.

    /usr/bin/python3 bench/graphs_beside_pytorch.py --data <folder with cora/> --threads 1 --threads 2

Both train `--layers` layers of width 64 between a linear layer and a head on all of Cora with AdamW, relu(f(x)). A step of
norma is the difference of two whole runs of `norma train`, one with more steps than the other, so that start and end count
for nothing and reading the batch does; the peer is a loop around the same arithmetic (bench/pytorch_cpu.py), with sums over
neighbours in the fastest of the ways that PyTorch has for this graph. Its speed is that of the BLAS it finds: without
libopenblas0-pthread (or LD_LIBRARY_PATH to one) products take ten times as long. CPU seconds are user and system time of the process:
on a machine that others use they tell more than the clock. Results go to bench/results/graphs-beside-pytorch-<time>.json.
"""

import argparse
import datetime
import gzip
import json
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def norma_seconds(arguments, kind, threads, steps):
    with tempfile.TemporaryDirectory() as folder:
        command = [arguments.norma, "train", "--out", f"{folder}/run", "--quiet", "--model.family=gcn", f"--model.convolution={kind}",
                   f"--model.layers={arguments.layers}", "--model.width=64", "--model.scheme=gcn", "--train.lr=1e-3",
                   f"--train.steps={steps}", f"--train.threads={threads}", "--train.probes=false", f"--train.log_every={steps}",
                   "--train.evaluate_every=0", "--train.checkpoint_every=0", "--train.tensorboard=false",
                   f"--data.path={arguments.data}/cora/planetoid_nodes.tsv.gz", f"--data.target_path={arguments.data}/cora/planetoid_edges.tsv"]
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        run = subprocess.run(command, capture_output=True, text=True)
        wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if run.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nended with {run.returncode}: {run.stderr.strip()}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def norma_step(arguments, kind, threads):
    few, many = arguments.steps // 5, arguments.steps
    a, b = norma_seconds(arguments, kind, threads, few), norma_seconds(arguments, kind, threads, many)
    return [(y - x) / (many - few) for x, y in zip(a, b)]


def torch_step(arguments, kind, threads):
    command = [sys.executable, __file__, "--peer", kind, "--data", arguments.data, "--threads", str(threads), "--steps",
               str(arguments.steps), "--layers", str(arguments.layers)]
    # Debian's PyTorch leaves products to whatever BLAS is installed, which has threads of its own.
    own = {name: str(threads) for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")}
    run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **own})
    if run.returncode != 0:
        sys.exit(f"the peer ended with {run.returncode}: {run.stderr.strip()}")
    return json.loads(run.stdout.splitlines()[-1])


def peer(arguments):
    import torch
    import torch.nn.functional as F
    sys.path.insert(0, str(ROOT / "bench"))
    from pytorch_cpu import Convolution, neighbour_sums

    torch.set_num_threads(arguments.threads[0])
    nodes, targets, width = [], [], 64
    with gzip.open(f"{arguments.data}/cora/planetoid_nodes.tsv.gz", "rt") as file:
        for line in list(file)[1:]:
            _, label, part, *words = line.rstrip("\n").split("\t")
            nodes.append([int(w) for w in " ".join(words).split()])
            targets.append(int(label) if part == "train" else -100)
    x = torch.zeros(len(nodes), 1 + max(max(words, default=0) for words in nodes))
    for node, words in enumerate(nodes):
        x[node, words] = 1 / max(1, len(words))
    pairs = {(i, i) for i in range(len(nodes))}
    for line in open(f"{arguments.data}/cora/planetoid_edges.tsv"):
        a, b = map(int, line.split())
        pairs |= {(a, b), (b, a)}
    graph = neighbour_sums(*torch.tensor(sorted(pairs)).T.contiguous(), len(nodes))
    targets = torch.tensor(targets)
    first, head = torch.nn.Linear(x.shape[1], width), torch.nn.Linear(width, int(targets.max()) + 1, bias=False)
    convolutions = torch.nn.ModuleList(Convolution(arguments.peer, width) for _ in range(arguments.layers))
    parameters = [p for module in (first, convolutions, head) for p in module.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-3, weight_decay=0.01)

    def step():
        optimizer.zero_grad(set_to_none=True)
        h = first(x)
        for convolution in convolutions:
            h = F.relu(convolution(h, graph))
        F.cross_entropy(head(h), targets).backward()
        optimizer.step()

    step()
    count = max(2, arguments.steps // 5)
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(count):
        step()
    print(json.dumps({"wall": (time.perf_counter() - wall) / count, "cpu": (time.process_time() - cpu) / count,
                      "torch": torch.__version__, "way": graph["way"]}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("NORMA_DATA", ""), help="folder with cora/ (or $NORMA_DATA)")
    parser.add_argument("--kind", action="append", help="gcn, sage, gin, gat; default gcn")
    parser.add_argument("--threads", action="append", type=int, help="default: 1, and 2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--norma", default=ROOT / "build/release/bin/norma")
    parser.add_argument("--out", default=ROOT / "bench/results", type=pathlib.Path)
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    arguments.threads = arguments.threads or [1, 2]
    if arguments.peer:
        return peer(arguments)
    results = []
    for kind in arguments.kind or ["gcn"]:
        for threads in arguments.threads:
            ours, theirs = [], []
            for _ in range(arguments.rounds):
                theirs.append(torch_step(arguments, kind, threads))
                ours.append(norma_step(arguments, kind, threads))
            for index, clock in enumerate(("wall", "cpu")):
                ratios = [t[clock] / o[index] for t, o in zip(theirs, ours)]
                results.append({"name": f"{kind} {arguments.layers} layers d=64 on Cora", "threads": threads, "clock": clock,
                                "norma_ms": 1e3 * statistics.median(o[index] for o in ours),
                                "pytorch_ms": 1e3 * statistics.median(t[clock] for t in theirs),
                                "ratio": {"median": statistics.median(ratios), "lowest": min(ratios), "highest": max(ratios)}})
                r = results[-1]
                print(f"{r['name']}, {threads} thread{'' if threads == 1 else 's'}, {clock}: norma {r['norma_ms']:.1f} ms, PyTorch "
                      f"{r['pytorch_ms']:.1f} ms, {r['ratio']['median']:.2f}x ({r['ratio']['lowest']:.2f} to {r['ratio']['highest']:.2f})",
                      flush=True)
    now = datetime.datetime.now(datetime.timezone.utc)
    target = arguments.out / f"graphs-beside-pytorch-{now:%Y-%m-%d-%H%M%S}.json"
    target.write_text(json.dumps({"date": f"{now:%Y-%m-%dT%H:%M:%SZ}", "torch": theirs[-1]["torch"], "sums": theirs[-1]["way"],
                                  "rounds": arguments.rounds, "cores": os.cpu_count(), "load": os.getloadavg(),
                                  "results": results}, indent=2) + "\n")
    print(f"results written to {target}", file=sys.stderr)


if __name__ == "__main__":
    main()
