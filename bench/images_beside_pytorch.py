#!/usr/bin/env python3
"""One training step of ResNet-20 (32 x 32, batch 64), norma's and PyTorch's in turns: seconds of the clock and of the CPU.

    /usr/bin/python3 bench/images_beside_pytorch.py --threads 1 --threads 2 --rounds 5 --out results.json

On machines that others use, seconds of the CPU on one thread are what says something. norma's are the difference of two
runs of different length, so that starting up does not count; they include drawing the images, which PyTorch is spared.
PyTorch has the faster of its two layouts, channels last.
"""

import argparse
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
MODEL = ["--model.family=resnet", "--model.layers=9", "--model.width=16", "--model.batch=64", "--model.norm=batch",
         "--model.scheme=resnet_v1", "--data.settings.size=32", "--data.evaluation_batches=1", "--quiet"]


def clocks(who):
    usage = resource.getrusage(who)
    return time.perf_counter(), usage.ru_utime + usage.ru_stime


def norma_seconds(program, threads, steps):
    with tempfile.TemporaryDirectory() as folder:
        wall, cpu = clocks(resource.RUSAGE_CHILDREN)
        subprocess.run([program, "train", *MODEL, f"--train.threads={threads}", f"--train.steps={steps}", "--out",
                        str(pathlib.Path(folder) / "run")], stdout=subprocess.DEVNULL, check=True)
        after = clocks(resource.RUSAGE_CHILDREN)
        return after[0] - wall, after[1] - cpu


def norma_step(program, threads, steps):
    few = steps // 5
    short, long = norma_seconds(program, threads, few), norma_seconds(program, threads, steps)
    return [(b - a) / (steps - few) for a, b in zip(short, long)]


def torch_step(threads, steps):
    """In a process of its own, since threads of OpenMP are bound when it begins."""
    run = subprocess.run([sys.executable, __file__, "--peer", "--threads", str(threads), "--steps", str(steps)], check=True,
                         capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": str(threads)})
    return json.loads(run.stdout)


def peer(threads, steps):
    import torch
    sys.path.insert(0, str(ROOT / "bench"))
    from pytorch_cpu import ResNet20

    torch.set_num_threads(threads)
    model = ResNet20().to(memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters())
    image, targets = torch.randn(64, 3, 32, 32).contiguous(memory_format=torch.channels_last), torch.randint(10, (64,))

    def step():
        optimizer.zero_grad(set_to_none=True)
        model(image, targets).backward()
        optimizer.step()

    step()
    before = clocks(resource.RUSAGE_SELF)
    for _ in range(steps):
        step()
    print(json.dumps([(b - a) / steps for a, b in zip(before, clocks(resource.RUSAGE_SELF))]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", action="append", type=int, help="default: 1, and 2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--norma", default=ROOT / "build/release/bin/norma")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--peer", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.peer:
        return peer(arguments.threads[0], arguments.steps)
    results = []
    for threads in arguments.threads or [1, 2]:
        rounds = [(norma_step(arguments.norma, threads, arguments.steps), torch_step(threads, arguments.steps))
                  for _ in range(arguments.rounds)]
        for index, clock in enumerate(("wall", "cpu")):
            ratios = [theirs[index] / ours[index] for ours, theirs in rounds]
            results.append({"threads": threads, "clock": clock, "norma_s": [ours[index] for ours, _ in rounds],
                            "pytorch_s": [theirs[index] for _, theirs in rounds],
                            "ratio": {"median": statistics.median(ratios), "lowest": min(ratios), "highest": max(ratios)}})
            r = results[-1]
            print(f"{threads} thread{'' if threads == 1 else 's'}, {clock}: norma {statistics.median(r['norma_s']):.4f} s, PyTorch "
                  f"{statistics.median(r['pytorch_s']):.4f} s, {r['ratio']['median']:.2f}x ({min(ratios):.2f} to {max(ratios):.2f})",
                  flush=True)
    if arguments.out:
        cpu = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        flags = next(line for line in cpu if line.startswith("flags")).split()
        arguments.out.write_text(json.dumps(
            {"date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "what": __doc__.splitlines()[0],
             "processor": next(line.split(": ", 1)[1] for line in cpu if line.startswith("model name")),
             "instruction_set": "avx512f" if "avx512f" in flags else "avx2" if "avx2" in flags else "baseline",
             "cores": os.cpu_count(), "load": os.getloadavg(), "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
