#!/usr/bin/env python3
"""What papers say of residual networks beyond transformers, tried on real data: docs/claims.md has what came out.

usage: bench/claims/claims.py FOLDER [CLAIM...] [--data FOLDER] [--cora FOLDER] [--norma PROGRAM] [--device auto|cpu|cuda]
                              [--variants A,B,...] [--jobs N] [--tune-only] [--tuning 1,2] [--fresh 11,12,...] [--until SECONDS] [--steps-share S]

Every claim has variants. A variant's learning rate is chosen with the tuning seeds on one half of the held-out data, by mean
loss; the fresh seeds and the other half judge it. Rates that a paper gives are taken as they are. FOLDER/claims.json has
every run; what was tuned there before is not tuned again, and on CPUs no run that is there is run again. --data: what bench/claims/small_images.py has made.
On a GPU the seeds and rates of a variant train side by side as one cohort, on CPUs every run is a process with one thread
and --jobs of them run at a time.
"""

import argparse
import concurrent.futures
import json
import math
import pathlib
import statistics
import subprocess
import sys
import time

# Student's t, 97.5 %, by degrees of freedom.
T = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131]

CIFAR = ["--data.task=images", "--data.path={data}/cifar16.npz", "--data.settings.crop=2", "--data.settings.flip=1"]
SGD = ["--train.optimiser=sgd", "--train.beta1=0.9", "--train.weight_decay=1e-4", "--train.decay=l2", "--train.clip=0",
       "--train.schedule=cosine"]
CORA = ["--data.task=planetoid", "--data.path={cora}/planetoid_nodes.tsv.gz", "--data.target_path={cora}/planetoid_edges.tsv",
        "--model.family=gcn", "--model.width=64", "--model.activation=relu", "--train.optimiser=adam", "--train.schedule=constant",
        "--train.warmup=0", "--train.clip=0", "--train.dropout=0.6", "--model.head_std=0.2"]
RESNET110 = [*CIFAR, *SGD, "--train.precision={precision}", "--model.family=resnet", "--model.layers=54", "--model.width=16", "--model.batch=128",
             "--model.norm=batch", "--train.warmup=50", "--data.evaluation_batches=7"]
RESNET20 = [*CIFAR, *SGD, "--model.family=resnet", "--model.layers=9", "--model.width=16", "--model.scheme=resnet_v1",
            "--model.norm_groups=4", "--train.warmup=0"]
DIT = ["--data.task=images", "--data.path={data}/digits.npz", "--model.family=dit", "--model.sizes.patch=2", "--model.width=64",
       "--model.heads=4", "--model.batch=64", "--train.optimiser=adam", "--train.schedule=constant", "--train.warmup=0",
       "--data.evaluation_batches=3", "--train.evaluate_every=50"]
PAIRNORM_SI = "relu(unit(meannorm(f(x))))"  # every node by itself: what its authors use for GCN
IMAGES_SEEN = 16000


def batches(norm, batch):
    """As many images whatever the batch; held out are 992 of them for tuning and as many for judging."""
    return {"keys": [f"--model.norm={norm}", f"--model.batch={batch}", f"--data.evaluation_batches={992 // batch}"],
            "rates": [0.1 * batch / 32], "steps": IMAGES_SEEN // batch}  # the paper's rule


# steps, keys of all variants; of each variant keys, and rates to choose from or the one that its paper gives.
CLAIMS = {
    "depth110": {
        "says": "pre-activation beats post-activation at 110 layers; Fixup and SkipInit train there without a norm, nothing else",
        "steps": 800, "keys": RESNET110, "ranks": "accuracy",
        "variants": {scheme: {"keys": [f"--model.scheme={scheme}"], "rates": [0.03, 0.1, 0.3]}
                     for scheme in ("resnet_v1", "resnet_v2", "fixup", "skipinit", "x + f(relu(x))")}},
    "batch": {
        "says": "batches of 2 hurt BatchNorm and not GroupNorm",
        "keys": RESNET20, "ranks": "accuracy",
        "variants": {f"{norm} {batch}": batches(norm, batch) for norm in ("batch", "group") for batch in (32, 2)}},
    "cora": {
        "says": "plain GCN loses its accuracy with depth, PairNorm and GCNII do not",
        "steps": 600, "keys": CORA, "ranks": "accuracy",
        "variants": {
            **{f"{name} {layers}": {"keys": [f"--model.scheme={scheme}", f"--model.layers={layers}",
                                             "--train.weight_decay=5e-4"], "rates": [0.005]}
               for name, scheme in (("gcn", "gcn"), ("pairnorm", "pairnorm"), ("pairnorm-si", PAIRNORM_SI)) for layers in (2, 32)},
            **{f"gcnii {layers}": {"keys": ["--model.scheme=gcnii", f"--model.layers={layers}", "--train.weight_decay=0.01",
                                            "--groups.decay.embedding=0.05", "--groups.decay.head=0.05"], "rates": [0.01]}
               for layers in (2, 32)}}},
    "mlp64": {  # generated numbers: `parity` of docs/data.md, whose best loss is 0.229
        "says": "of networks of 64 layers, those whose branches start at 0 train, plain ones do not",
        "steps": 200, "keys": ["--model.family=mlp", "--model.layers=64", "--model.width=32", "--model.batch=64"], "ranks": "loss",
        "variants": {scheme: {"keys": [f"--model.scheme={scheme}"], "rates": [1e-3, 3e-3]}
                     for scheme in ("rezero", "pre", "post", "x + f(x)", "f(x)")}},
    **{f"dit{layers}": {
        "says": "adaLN-Zero beats adaLN early in training",
        "steps": 300, "keys": [*DIT, f"--model.layers={layers}"], "ranks": "loss",
        "variants": {scheme: {"keys": [f"--model.scheme={scheme}"], "rates": [1e-4, 3e-4, 1e-3, 3e-3]}
                     for scheme in ("adaln", "adaln_zero")}} for layers in (6, 12, 28)},
}


def interval(values):
    """Mean and half of the 95 % interval."""
    if len(values) < 2:
        return {"mean": values[0] if values else math.nan, "half": math.nan, "n": len(values)}
    half = T[min(len(values) - 2, len(T) - 1)] * statistics.stdev(values) / math.sqrt(len(values))
    return {"mean": statistics.mean(values), "half": half, "n": len(values)}


class Laboratory:
    def __init__(self, arguments):
        self.arguments = arguments
        self.folder = pathlib.Path(arguments.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.file = self.folder / "claims.json"
        self.found = json.loads(self.file.read_text()) if self.file.exists() else {}
        self.began = time.monotonic()

    def late(self):
        return time.monotonic() - self.began > self.arguments.until

    def sweep(self, name, keys, steps, rates, seeds, held_out):
        """Runs of one variant, by rate and seed; one process."""
        out = self.folder / name.replace("/", "-").replace(" ", "_")
        fill = {"data": self.arguments.data, "cora": self.arguments.cora,
                "precision": "tf32" if self.arguments.device == "cuda" else "f32"}
        command = [self.arguments.norma, "sweep", "--json", "--quiet", "--out", str(out), "--seeds", ",".join(map(str, seeds)) + ",",
                   f"--device={self.arguments.device}", f"--train.steps={max(1, round(steps * self.arguments.steps_share))}",
                   f"--train.lr=[{','.join(map(repr, rates))}]", f"--data.held_out={held_out}", "--train.probes=false",
                   "--train.tensorboard=false", "--train.evaluate_every=0", "--train.log_every=20", "--train.checkpoint_every=0"]
        if self.arguments.device != "cuda":
            command.append("--train.threads=1")
        for key in keys:
            for place, value in fill.items():
                key = key.replace("{" + place + "}", value)
            command.append(key)
        began = time.monotonic()
        left = max(1, self.arguments.until - (time.monotonic() - self.began))
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=None if math.isinf(left) else left)
        except subprocess.TimeoutExpired:
            return [], "out of time"
        if done.returncode:
            return [], done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit {done.returncode}"
        print(f"{name}: {time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)
        return [self.run(out, run) for run in json.loads(done.stdout)["runs"]], ""

    @staticmethod
    def run(out, run):
        accuracy = None
        for line in (out / "runs" / run["id"] / "metrics.jsonl").read_text().splitlines():
            accuracy = json.loads(line).get("evaluation_accuracy", accuracy)
        return {"lr": run["lr"], "seed": run["seed"], "verdict": run["verdict"], "loss": run["evaluation_loss"], "accuracy": accuracy,
                "training_loss": run["final_loss"], "evaluations": run["evaluations"], "diverged_at_step": run["diverged_at_step"]}

    def run_all(self, claim, stage, plan, seeds, held_out):
        """plan: variant -> rates. Cohorts one after another on a GPU, single runs side by side on CPUs."""
        of = CLAIMS[claim]
        whole = self.arguments.device == "cuda"
        work, found = [], {}
        for variant, rates in plan.items():
            row = of["variants"][variant]
            steps = row.get("steps", of.get("steps"))
            known = self.found.get(claim, {}).get(stage, {}).get(variant, [])
            kept = known if not whole or stage == "tune" else []
            there = {(rate, run["seed"]) for run in kept for rate in rates if math.isclose(run["lr"], rate)}
            cells = [([rate], [seed]) for rate in rates for seed in seeds if (rate, seed) not in there]
            if whole:
                cells = [] if kept else [(rates, seeds)]
            found[variant] = list(kept)
            for cell_rates, cell_seeds in cells:
                name = f"{claim}/{stage}/{variant}"
                if not whole:
                    name += f"/{cell_rates[0]:g}/{cell_seeds[0]}"
                work.append((variant, name, [*of["keys"], *row["keys"]], steps, cell_rates, cell_seeds))
        with concurrent.futures.ThreadPoolExecutor(1 if whole else self.arguments.jobs) as pool:
            jobs = {pool.submit(self.sweep, *one[1:], held_out): one for one in work}
            for job in concurrent.futures.as_completed(jobs):
                variant, name = jobs[job][:2]
                runs, why = job.result()
                if why:
                    print(f"{name}: {why}", file=sys.stderr, flush=True)
                found[variant] += runs
                self.found.setdefault(claim, {"says": of["says"]}).setdefault(stage, {})[variant] = found[variant]
                self.file.write_text(json.dumps(self.found, indent=1))
        return found

    def choose(self, claim, variant, runs, seeds):
        """The rate with the least mean loss among those of which no seed failed; the smallest where all did."""
        rates = CLAIMS[claim]["variants"][variant]["rates"]
        losses = {rate: [run["loss"] for run in runs if math.isclose(run["lr"], rate) and isinstance(run["loss"], (int, float))]
                  for rate in rates}
        whole = {rate: statistics.mean(values) for rate, values in losses.items() if len(values) == len(seeds)}
        return min(whole, key=whole.get) if whole else min(rates)

    def try_claim(self, claim):
        asked = self.arguments.variants
        variants = {name: row for name, row in CLAIMS[claim]["variants"].items() if not asked or name in asked}
        to_tune = {name: row["rates"] for name, row in variants.items() if len(row["rates"]) > 1}
        if to_tune:
            self.run_all(claim, "tune", to_tune, self.arguments.tuning, "even")
        if self.arguments.tune_only:
            return
        tuned = self.found.get(claim, {}).get("tune", {})
        plan = {name: [self.choose(claim, name, tuned.get(name, []), self.arguments.tuning)] if len(row["rates"]) > 1 else row["rates"]
                for name, row in variants.items()}
        self.run_all(claim, "judge", plan, self.arguments.fresh, "odd")

    def table(self):
        for claim, found in self.found.items():
            print(f"\n{claim}: {found['says']}")
            for stage in ("tune", "judge"):
                for variant in found.get(stage, {}):
                    runs = found[stage][variant]
                    for rate in sorted({run["lr"] for run in runs}):
                        at = [run for run in runs if run["lr"] == rate]
                        words = [f"  {stage:5} {variant:16} lr {rate:<9g}"]
                        for what in ("loss", "accuracy"):
                            values = [run[what] for run in at if isinstance(run[what], (int, float))]
                            if values:
                                one = interval(values)
                                words.append(f"{what} {one['mean']:.4f} ± {one['half']:.4f} ({one['n']})")
                        failed = [run for run in at if run["diverged_at_step"] is not None]
                        if failed:
                            words.append(f"{len(failed)} of {len(at)} diverged")
                        print("  ".join(words))


def numbers(text):
    return [int(word) for word in text.split(",")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("claims", nargs="*", default=[])
    parser.add_argument("--data", default="build/claims-data")
    parser.add_argument("--cora", default="")
    parser.add_argument("--norma", default="build/release/bin/norma")
    parser.add_argument("--device", default="cpu", choices=["auto", "cpu", "cuda"])
    parser.add_argument("--variants", type=lambda text: text.split(","), default=[], help="these alone")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--tune-only", action="store_true")
    parser.add_argument("--tuning", type=numbers, default=[1, 2])
    parser.add_argument("--fresh", type=numbers, default=[11, 12, 13, 14, 15, 16])
    parser.add_argument("--until", type=float, default=math.inf)
    parser.add_argument("--steps-share", type=float, default=1, help="to try it out")
    arguments = parser.parse_args()
    for claim in arguments.claims:
        if claim not in CLAIMS:
            sys.exit(f"claims.py: there is no claim '{claim}'; expected some of {', '.join(CLAIMS)}")
    laboratory = Laboratory(arguments)
    for claim in arguments.claims or CLAIMS:
        if not laboratory.late():
            laboratory.try_claim(claim)
    laboratory.table()


main()
