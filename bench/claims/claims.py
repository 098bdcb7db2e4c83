#!/usr/bin/env python3
"""What papers say of residual networks beyond transformers, tried on real data: docs/claims.md has what came out.

usage: bench/claims/claims.py FOLDER [CLAIM...] [--data FOLDER] [--cora FOLDER] [--norma PROGRAM] [--device auto|cpu|cuda]
                              [--variants A,B,...] [--jobs N] [--tune-only] [--tuning 1,2] [--fresh 11,12,...] [--until SECONDS] [--steps-share S]

Every claim has variants. A variant's learning rate is chosen with the tuning seeds on one half of the held-out data, by mean
loss; the fresh seeds and the other half judge it. Rates that a paper gives are taken as they are. Where a variant has other
settings to choose from, they are tried at its first rate, and then its other rates with the best of them. Where a claim
counts the best validated step, as many papers do, the half to tune on chooses setting, rate and step by accuracy; a fresh
seed is trained twice, and the step that is best on that half is read off the other.
FOLDER/claims.json has every run; what was tuned there before is not tuned again, and on CPUs no run that is there is run
again. --data: what bench/claims/small_images.py has made.
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
        "--train.warmup=0", "--train.clip=0", "--model.head_std=0.2"]
UNTUNED = "--train.dropout=0.6"
RESNET110 = [*CIFAR, *SGD, "--train.precision={precision}", "--model.family=resnet", "--model.layers=54", "--model.width=16", "--model.batch=128",
             "--model.norm=batch", "--train.warmup=50", "--data.evaluation_batches=7"]
RESNET20 = [*CIFAR, *SGD, "--model.family=resnet", "--model.layers=9", "--model.width=16", "--model.scheme=resnet_v1",
            "--model.norm_groups=4", "--train.warmup=0"]
DIT = ["--data.task=images", "--data.path={data}/digits.npz", "--model.family=dit", "--model.sizes.patch=2", "--model.width=64",
       "--model.heads=4", "--model.batch=64", "--train.optimiser=adam", "--train.schedule=constant", "--train.warmup=0",
       "--data.evaluation_batches=3", "--train.evaluate_every=50"]
DIT_RATES = [1e-4, 3e-4, 1e-3, 3e-3]  # those of 28 layers are the two that came out best with 6 and with 12
PAIRNORM_SI = "relu(unit(meannorm(f(x))))"  # every node by itself: what its authors use for GCN
IMAGES_SEEN = 16000

# Of graph convolutions: the formula, with scales {s} to choose from. Plain layers lose or keep their scale by theirs, which is
# 1 or what keeps the square behind a ReLU; those of PairNorm are from the pool of its authors.
NODE_LAYERS = {"gcn": ("relu({s}*f(x{edges}))", ("1", "sqrt(2)")),
               "pairnorm": ("relu({s}*pairnorm(f(x{edges})))", ("1", "10")),
               "pairnorm-si": ("relu({s}*unit(meannorm(f(x{edges}))))", ("1", "10"))}


def batches(norm, batch):
    """As many images whatever the batch; held out are 992 of them for tuning and as many for judging."""
    return {"keys": [f"--model.norm={norm}", f"--model.batch={batch}", f"--data.evaluation_batches={992 // batch}"],
            "rates": [0.1 * batch / 32], "steps": IMAGES_SEEN // batch}  # the paper's rule


def node_settings(name):
    """Weights of neighbours, scale and dropout."""
    formula, scales = NODE_LAYERS[name]
    return {f"{edges} s={scale} dropout={dropout}":
            ["--model.scheme=" + formula.format(s=scale, edges="" if edges == "symmetric" else ', edges = "mean"'),
             f"--train.dropout={dropout}"]
            for edges in ("symmetric", "mean") for scale in scales for dropout in ("0", "0.6")}


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
                                             "--train.weight_decay=5e-4", UNTUNED], "rates": [0.005]}
               for name, scheme in (("gcn", "gcn"), ("pairnorm", "pairnorm"), ("pairnorm-si", PAIRNORM_SI)) for layers in (2, 32)},
            **{f"gcnii {layers}": {"keys": ["--model.scheme=gcnii", f"--model.layers={layers}", "--train.weight_decay=0.01", UNTUNED,
                                            "--groups.decay.embedding=0.05", "--groups.decay.head=0.05"], "rates": [0.01]}
               for layers in (2, 32)}}},
    "cora-tuned": {
        "says": "tuned and at its best validated step, PairNorm keeps more accuracy at depth than plain GCN",
        "steps": 400, "keys": [*CORA, "--train.weight_decay=5e-4", "--train.evaluate_every=10"], "ranks": "accuracy",
        "counts": "best validated step",
        "variants": {f"{name} {layers}": {"keys": [f"--model.layers={layers}"], "rates": [0.005, 0.002, 0.01],
                                          "settings": node_settings(name)}
                     for name in NODE_LAYERS for layers in (2, 32)} | {
            # Whether plain layers only need longer: the settings that were chosen for them, as many steps as PairNorm's authors.
            "gcn 32 long": {"keys": ["--model.layers=32", "--model.scheme=gcn", "--train.dropout=0"], "rates": [0.005],
                            "steps": 1500}}},
    "mlp64": {  # generated numbers: `parity` of docs/data.md, whose best loss is 0.229
        "says": "of networks of 64 layers, those whose branches start at 0 train, plain ones do not",
        "steps": 200, "keys": ["--model.family=mlp", "--model.layers=64", "--model.width=32", "--model.batch=64"], "ranks": "loss",
        "variants": {scheme: {"keys": [f"--model.scheme={scheme}"], "rates": [1e-3, 3e-3]}
                     for scheme in ("rezero", "pre", "post", "x + f(x)", "f(x)")}},
    **{f"dit{layers}": {
        "says": "adaLN-Zero beats adaLN early in training",
        "steps": 300, "keys": [*DIT, f"--model.layers={layers}"], "ranks": "loss",
        "variants": {scheme: {"keys": [f"--model.scheme={scheme}"], "rates": rates} for scheme in ("adaln", "adaln_zero")}}
       for layers, rates in ((6, DIT_RATES), (12, DIT_RATES), (28, DIT_RATES[2:]))},
}


def interval(values):
    """Mean and half of the 95 % interval."""
    if len(values) < 2:
        return {"mean": values[0] if values else math.nan, "half": math.nan, "n": len(values)}
    half = T[min(len(values) - 2, len(T) - 1)] * statistics.stdev(values) / math.sqrt(len(values))
    return {"mean": statistics.mean(values), "half": half, "n": len(values)}


def best_step(validated, judged):
    """The judged run at the step where the validated one is most accurate, the first of several."""
    accuracies = validated["evaluations"].get("accuracy", [])
    if not accuracies or len(accuracies) != len(judged["evaluations"].get("accuracy", [])):
        return {**judged, "accuracy": None}
    at = max(range(len(accuracies)), key=lambda i: accuracies[i])
    of = judged["evaluations"]
    return {**judged, "best_step": of["step"][at], "validated": accuracies[at], "loss": of["loss"][at], "accuracy": of["accuracy"][at]}


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
        steps, accuracies = [], []
        for line in (out / "runs" / run["id"] / "metrics.jsonl").read_text().splitlines():
            record = json.loads(line)
            if "evaluation_accuracy" in record:
                steps.append(record["step"])
                accuracies.append(record["evaluation_accuracy"])
        evaluations = dict(run["evaluations"])
        if steps == evaluations["step"]:
            evaluations["accuracy"] = accuracies
        return {"lr": run["lr"], "seed": run["seed"], "verdict": run["verdict"], "loss": run["evaluation_loss"],
                "accuracy": accuracies[-1] if accuracies else None, "training_loss": run["final_loss"],
                "evaluations": evaluations, "diverged_at_step": run["diverged_at_step"]}

    def at_best_step(self, name, keys, steps, rates, seeds, held_out):
        """The same runs, counted at the step that is best on the half to tune on. To judge, they are trained twice: what is
        held out has no part in training, so the second time differs in nothing but the half that it is evaluated on."""
        validated, why = self.sweep(name, keys, steps, rates, seeds, "even")
        if why or held_out == "even":
            return [best_step(run, run) for run in validated], why
        judged, why = self.sweep(name + "/judged", keys, steps, rates, seeds, held_out)
        pairs = [(one, other) for one in validated for other in judged if (one["lr"], one["seed"]) == (other["lr"], other["seed"])]
        for one, other in pairs:
            if one["training_loss"] != other["training_loss"]:
                return [], f"the run with seed {one['seed']} was not the same the second time"
        return [best_step(one, other) for one, other in pairs], why

    def run_all(self, claim, stage, plan, seeds, held_out):
        """plan: variant -> rates and settings. Cohorts one after another on a GPU, single runs side by side on CPUs."""
        of = CLAIMS[claim]
        whole = self.arguments.device == "cuda"
        go = self.at_best_step if "counts" in of else self.sweep
        work, found = [], {}
        for variant, (rates, settings) in plan.items():
            row = of["variants"][variant]
            steps = row.get("steps", of.get("steps"))
            kept = self.found.get(claim, {}).get(stage, {}).get(variant, [])
            if whole and stage != "tune":
                kept = []
            found[variant] = list(kept)
            for setting in settings:
                there = {(rate, run["seed"]) for run in kept for rate in rates
                         if math.isclose(run["lr"], rate) and run.get("setting") == setting}
                cells = [([rate], [seed]) for rate in rates for seed in seeds if (rate, seed) not in there]
                if whole:
                    cells = [] if there else [(rates, seeds)]
                for cell_rates, cell_seeds in cells:
                    name = f"{claim}/{stage}/{variant}"
                    if setting is not None:
                        name += f"/{setting}"
                    if not whole:
                        name += f"/{cell_rates[0]:g}/{cell_seeds[0]}"
                    keys = [*of["keys"], *row["keys"], *row.get("settings", {}).get(setting, [])]
                    work.append((variant, setting, name, keys, steps, cell_rates, cell_seeds))
        with concurrent.futures.ThreadPoolExecutor(1 if whole else self.arguments.jobs) as pool:
            jobs = {pool.submit(go, *one[2:], held_out): one for one in work}
            for job in concurrent.futures.as_completed(jobs):
                variant, setting, name = jobs[job][:3]
                runs, why = job.result()
                if why:
                    print(f"{name}: {why}", file=sys.stderr, flush=True)
                found[variant] += [run if setting is None else {"setting": setting, **run} for run in runs]
                self.found.setdefault(claim, {"says": of["says"]}).setdefault(stage, {})[variant] = found[variant]
                self.file.write_text(json.dumps(self.found, indent=1))

    def choose(self, claim, variant):
        """Rate and setting with the least mean loss, or the highest accuracy where the best step counts, among those of which
        no tuning seed failed; the smallest rate and the first setting where all did."""
        of, row = CLAIMS[claim], CLAIMS[claim]["variants"][variant]
        runs = self.found.get(claim, {}).get("tune", {}).get(variant, [])
        scores = {}
        for setting in row.get("settings", [None]):
            for rate in row["rates"]:
                at = [run for run in runs if math.isclose(run["lr"], rate) and run.get("setting") == setting]
                values = [-run["accuracy"] if "counts" in of else run["loss"] for run in at
                          if isinstance(run["accuracy" if "counts" in of else "loss"], (int, float))]
                if len(values) == len(self.arguments.tuning):
                    scores[(rate, setting)] = statistics.mean(values)
        return min(scores, key=scores.get) if scores else (min(row["rates"]), next(iter(row.get("settings", [None]))))

    def try_claim(self, claim):
        asked = self.arguments.variants
        variants = {name: row for name, row in CLAIMS[claim]["variants"].items() if not asked or name in asked}
        chosen = {name: "settings" in row or len(row["rates"]) > 1 for name, row in variants.items()}
        settings = {name: (row["rates"][:1], list(row["settings"])) for name, row in variants.items() if "settings" in row}
        if settings:
            self.run_all(claim, "tune", settings, self.arguments.tuning, "even")
        rates = {name: (row["rates"], [self.choose(claim, name)[1]]) for name, row in variants.items() if chosen[name]}
        if rates:
            self.run_all(claim, "tune", rates, self.arguments.tuning, "even")
        if self.arguments.tune_only:
            return
        plan = {}
        for name, row in variants.items():
            rate, setting = self.choose(claim, name) if chosen[name] else (row["rates"][0], None)
            plan[name] = ([rate], [setting])
        self.run_all(claim, "judge", plan, self.arguments.fresh, "odd")

    def table(self):
        for claim, found in self.found.items():
            print(f"\n{claim}: {found['says']}")
            for stage in ("tune", "judge"):
                for variant in found.get(stage, {}):
                    runs = found[stage][variant]
                    for setting, rate in sorted({(run.get("setting") or "", run["lr"]) for run in runs}):
                        at = [run for run in runs if run["lr"] == rate and (run.get("setting") or "") == setting]
                        words = [f"  {stage:5} {variant:16} {setting} lr {rate:<9g}"]
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
