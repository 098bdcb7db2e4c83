#!/usr/bin/env python3
"""CPU seconds of one training step of ResNet-20 (32 x 32, batch 64), norma's and PyTorch's, one thread each, in rounds.

usage: bench/cpu_seconds.py [build/release/bin/norma] [rounds] [results.json]

For machines that others use: seconds of the clock say little there. norma's are the difference of two runs of different
length, so that starting up does not count; they include drawing the images, which PyTorch is spared.
"""

import json
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import torch

from pytorch_cpu import ResNet20

MODEL = ["--model.family=resnet", "--model.layers=9", "--model.width=16", "--model.batch=64", "--model.norm=batch",
         "--model.scheme=resnet_v1", "--data.settings.size=32", "--data.evaluation_batches=1", "--train.threads=1", "--quiet"]
SHORT, LONG = 2, 12


def norma_seconds(program, steps):
    with tempfile.TemporaryDirectory() as folder:
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        subprocess.run([program, "train", *MODEL, f"--train.steps={steps}", "--out", str(pathlib.Path(folder) / "run")],
                       stdout=subprocess.DEVNULL, check=True)
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else "build/release/bin/norma"
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    torch.set_num_threads(1)
    model = ResNet20().to(memory_format=torch.channels_last)  # the faster of its two layouts
    optimizer = torch.optim.AdamW(model.parameters())
    image, targets = torch.randn(64, 3, 32, 32).contiguous(memory_format=torch.channels_last), torch.randint(10, (64,))

    def step():
        optimizer.zero_grad(set_to_none=True)
        model(image, targets).backward()
        optimizer.step()

    step()
    ratios, seconds = [], []
    for _ in range(rounds):
        before = time.process_time()
        for _ in range(LONG - SHORT):
            step()
        theirs = (time.process_time() - before) / (LONG - SHORT)
        ours = (norma_seconds(program, LONG) - norma_seconds(program, SHORT)) / (LONG - SHORT)
        ratios.append(theirs / ours)
        seconds.append((ours, theirs))
        print(f"norma {ours:.3f} s, PyTorch {theirs:.3f} s, ratio {ratios[-1]:.2f}", flush=True)
    print(f"median {statistics.median(ratios):.2f}, {min(ratios):.2f} to {max(ratios):.2f}")
    if len(sys.argv) > 3:
        flags = next(line for line in open("/proc/cpuinfo") if line.startswith("flags")).split()
        pathlib.Path(sys.argv[3]).write_text(json.dumps(
            {"date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "what": __doc__.splitlines()[0], "torch": torch.__version__,
             "instruction_set": "avx512f" if "avx512f" in flags else "avx2" if "avx2" in flags else "baseline",
             "rounds": [{"norma": ours, "pytorch": theirs} for ours, theirs in seconds]}, indent=1) + "\n")


if __name__ == "__main__":
    main()
