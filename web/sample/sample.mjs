// Invented results for development and tests: shaped like a real study, measured by nothing. Never part of a report
// that a user sees; every page made from it says so. `node sample/sample.mjs > results.json`.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const golden = (name, extension) => {
  try {
    return readFileSync(new URL(`../../tests/golden/diagrams/${name}.${extension}`, import.meta.url), "utf8");
  } catch {
    return undefined;
  }
};

// A small counter-based generator, so that the sample is the same everywhere.
function generator(seed) {
  let state = seed >>> 0;
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const normal = () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  return { uniform, normal };
}

// name, title, source, formulas, gradient exponent and level, amplification law, stream growth, stable lr at depth 24,
// warmup needed, best loss, share of depth in use
const kSchemes = [
  { name: "post", title: "Post-LN", source: "Vaswani et al. 2017, arXiv 1706.03762", sublayer: "norm(x + f(x))",
    gradient: [1.7, 0], amplification: (n) => 6.6e-5 * n, stream: 0, lr: 6e-4, warmup: 400, loss: 1.62, used: 0.78, late: 1 },
  { name: "pre", title: "Pre-LN", source: "Xiong et al. 2020, arXiv 2002.04745", sublayer: "x + f(norm(x))", final: "norm(x)",
    gradient: [2.08, -0.5], amplification: (n) => 1.9e-4 * Math.log(1 + n / 1.6), stream: 0.5, lr: 6e-3, warmup: 0, loss: 1.55, used: 0.55, late: -1 },
  { name: "admin", title: "Admin", source: "Liu et al. 2020, arXiv 2004.08249", sublayer: "norm(omega*x + f(x))",
    gradient: [2.02, -0.5], amplification: (n) => 1.85e-4 * Math.log(1 + n / 1.7), stream: 0, lr: 3e-3, warmup: 0, loss: 1.54, used: 0.68, late: 0.3 },
  { name: "rezero", title: "ReZero", source: "Bachlechner et al. 2020, arXiv 2003.04887", sublayer: "x + g*f(x)",
    gradient: [1e-2, 0], amplification: () => 8e-6, stream: 0, lr: 3e-3, warmup: 0, loss: 1.68, used: 0.61, late: -0.2 },
  { name: "deepnorm", title: "DeepNorm", source: "Wang et al. 2022, arXiv 2203.00555", sublayer: "norm(alpha*x + f(x))",
    constants: { alpha: "(2*N)^(1/4)", beta: "(8*N)^(-1/4)" },
    gradient: [1.0, -0.5], amplification: (n) => 4.3e-5 * Math.pow(n / 4, 0.07), stream: 0, lr: 1.8e-3, warmup: 100, loss: 1.53, used: 0.8, late: 0.5 },
  { name: "peri", title: "Peri-LN (Sandwich-LN)", source: "Kim et al. 2025, arXiv 2502.02732", sublayer: "x + norm(f(norm(x)))", final: "norm(x)",
    gradient: [1.97, -0.48], amplification: (n) => 2.4e-4 * Math.log(1 + n / 1.2), stream: 0.5, lr: 1e-2, warmup: 0, loss: 1.52, used: 0.63, late: -0.5 },
  { name: "lns", title: "LayerNorm Scaling", source: "Sun et al. 2025, arXiv 2502.05795", sublayer: "x + f(norm(x)/sqrt(l))", final: "norm(x)",
    gradient: [1.5, -0.62], amplification: (n) => 1.1e-4 * Math.log(1 + n / 1.1), stream: 0.2, lr: 6e-3, warmup: 0, loss: 1.53, used: 0.72, late: -0.3 },
  { name: "keel", title: "Keel", source: "Chen & Wei 2026, arXiv 2601.19895", sublayer: "rmsnorm(n*x + f(rmsnorm(x)))",
    gradient: [1.0, -1], amplification: () => 1.2e-4, stream: 0, lr: 1e-2, warmup: 0, loss: 1.51, used: 0.83, late: 0.1 },
];

const kLrs = [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2], kWarmups = [0, 100, 400];

function estimate(values) {
  const n = values.length, mean = values.reduce((a, b) => a + b, 0) / n;
  const spread = Math.sqrt(values.reduce((a, b) => a + (b - mean) ** 2, 0) / Math.max(1, n - 1));
  const half = n > 1 ? (2.2 * spread) / Math.sqrt(n) : 0;
  return { mean, low: mean - half, high: mean + half, n };
}

function analysis(random, chosen, name, title, about, source, depths, law, exponent, profile, extra = {}) {
  return {
    name, title, x: "layers", unit: "", log: true, about, source, ...extra,
    series: chosen.map((scheme) => {
      const noisy = (value) => estimate([0, 1, 2, 3, 4].map(() => value * Math.exp(0.04 * random.normal())));
      const power = exponent(scheme);
      return {
        scheme: scheme.name, x: depths, y: depths.map((depth) => noisy(law(scheme, depth))),
        exponent: { value: power + 0.03 * random.normal(), low: power - 0.06, high: power + 0.07 },
        theory: { y: depths.map((depth) => law(scheme, depth) * 1.03), exponent: power },
        profiles: depths.slice(1).map((depth) => {
          const sites = Array.from({ length: 2 * depth }, (_, k) => `layers.${k >> 1}.${k % 2 ? "ffn" : "attn"}`);
          return { depth, sites, y: sites.map((_, k) => noisy(profile(scheme, k + 1, depth))),
                   theory: sites.map((_, k) => profile(scheme, k + 1, depth)) };
        }),
      };
    }),
  };
}

function loss_at(scheme, layers, lr, warmup) {
  const limit = scheme.lr * (24 / layers) ** (scheme.name === "post" ? 0.9 : 0.25) * (warmup >= scheme.warmup ? 1 : 0.12);
  const best = limit / 3, off = Math.log10(lr / best);
  const depth_gain = 0.06 * Math.log2(layers / 12) * scheme.used;
  return { diverges: lr > limit * 1.6, risky: lr > limit * 0.9, loss: scheme.loss - depth_gain + 0.16 * off * off + (off > 0 ? 0.1 * off : 0) };
}

function curve(random, floor, lr, diverged_at, steps, every) {
  const step = [], loss = [];
  for (let t = every; t <= steps; t += every) {
    if (diverged_at !== null && t > diverged_at + 3 * every) break;
    const base = floor + (3.4 - floor) * Math.exp(-Math.sqrt(t * lr * 900) / 6) + 0.015 * random.normal();
    const burst = diverged_at !== null && t > diverged_at - 4 * every ? Math.exp((t - diverged_at + 4 * every) / (2.2 * every)) * 0.18 : 0;
    step.push(t);
    loss.push(diverged_at !== null && t > diverged_at ? "nan" : base + burst);
  }
  return { step, loss };
}

export function sample({ depths = [12, 24], seeds = 1, steps = 2000, points = 100, seed = 7, schemes = kSchemes.length } = {}) {
  const chosen = kSchemes.slice(0, schemes);
  const random = generator(seed);
  const runs = [], maps = [], tuned = [], depth_use = [];
  const every = steps / points;
  for (const layers of depths) {
    for (const scheme of chosen) {
      const grid = kWarmups.map((warmup) => kLrs.map((lr) => {
        const law = loss_at(scheme, layers, lr, warmup);
        const finals = [];
        let lost = 0;
        for (let s = 1; s <= seeds; ++s) {
          const diverged = law.diverges || (law.risky && random.uniform() < 0.4);
          const at = diverged ? Math.round((0.04 + 0.5 * random.uniform()) * points) * every : null;
          const drawn = curve(random, law.loss, lr, at, steps, every);
          const finite = drawn.loss.filter((v) => typeof v === "number");
          const final = diverged ? "nan" : law.loss + 0.012 * random.normal() + (3.4 - law.loss) * Math.exp(-Math.sqrt(steps * lr * 900) / 6);
          if (diverged) ++lost; else finals.push(final);
          runs.push({
            id: `${scheme.name}-${layers}-lr${lr}-w${warmup}-s${s}`, scheme: scheme.name, layers, width: 128, lr, warmup, seed: s,
            status: diverged ? "diverged" : "finished", axes: { "train.lr": String(lr) }, stopped_at_step: null, verdict: diverged ? `diverged at step ${at}: loss is not finite` : "stable",
            diverged, diverged_at_step: at, diverged_because: diverged ? "loss is not finite" : null,
            first_bad_wire: diverged ? `layers.${Math.floor(random.uniform() * layers)}.ffn.out` : null,
            final_loss: final, best_loss: finite.length ? Math.min(...finite) : "nan", evaluation_loss: diverged ? null : final + 0.02,
            tokens_per_second: 41000 + 900 * random.normal(), curve: drawn,
            evaluations: { step: drawn.step.filter((_, i) => i % 10 === 9), loss: drawn.loss.filter((_, i) => i % 10 === 9) },
          });
        }
        return { lr, warmup, loss: finals.length ? estimate(finals) : { mean: "nan", low: "nan", high: "nan", n: 0 }, diverged: lost / seeds };
      }));
      maps.push({ scheme: scheme.name, layers, rest: "", x: { name: "lr", values: kLrs }, y: { name: "warmup", values: kWarmups },
                  loss: grid.map((row) => row.map((cell) => cell.loss)), diverged: grid.map((row) => row.map((cell) => cell.diverged)) });
      const alive = grid.flat().filter((cell) => cell.diverged === 0).sort((a, b) => a.loss.mean - b.loss.mean);
      const largest = (cells) => Math.max(...cells.filter((cell) => cell.diverged === 0).map((cell) => cell.lr), 0);
      const stable = (lr) => ({ lr, low: lr, high: lr, beyond: false });
      const sensitivity = 0.05 + 0.3 * grid.flat().filter((cell) => cell.diverged > 0).length / 18;
      tuned.push({ scheme: scheme.name, layers, rest: "", lr: alive[0].lr, warmup: alive[0].warmup, loss: alive[0].loss,
                   sensitivity, sensitivity_estimate: estimate([sensitivity]), diverged: grid.flat().filter((cell) => cell.diverged > 0).length / 18,
                   stable_lr: stable(largest(grid.flat())), stable_lr_without_warmup: stable(largest(grid[0])),
                   largest_stable_lr: largest(grid.flat()), largest_stable_lr_without_warmup: largest(grid[0]),
                   needs_warmup: scheme.warmup, steps_to_target: estimate([0, 1, 2].map(() => 900 + 400 * (scheme.loss - 1.5) * 10 + 20 * random.normal())), target: 1.9 });
      const weight = Array.from({ length: layers }, (_, l) => Math.exp(scheme.late * (2 * l / layers - 1)) * scheme.used);
      depth_use.push({
        scheme: scheme.name, layers, loss: alive[0].loss, effective_depth: estimate([0, 1, 2].map(() => layers * scheme.used * (1 + 0.02 * random.normal()))),
        curve: { layers_kept: Array.from({ length: layers + 1 }, (_, k) => k),
                 loss: Array.from({ length: layers + 1 }, (_, k) => scheme.loss + 1.8 * Math.max(0, 1 - k / (layers * scheme.used)) ** 1.3 + 0.05 * (1 - k / layers)) },
        deletion: weight.map((w) => estimate([0, 1, 2].map(() => 0.05 * w * Math.exp(0.2 * random.normal())))),
        swap: weight.slice(1).map((w) => estimate([0, 1, 2].map(() => 0.03 * w * Math.exp(0.2 * random.normal())))),
        width_equivalence: weight.slice(1).map((w) => estimate([0, 1, 2].map(() => 0.02 * w * Math.exp(0.2 * random.normal())))),
        influence: weight.map((w) => estimate([0, 1, 2].map(() => 0.12 * w * Math.exp(0.1 * random.normal())))),
        angular_distance: Array.from({ length: layers + 1 }, (_, i) => Array.from({ length: layers + 1 }, (_, j) => {
          let sum = 0;
          for (let k = Math.min(i, j); k < Math.max(i, j); ++k) sum += weight[k] ** 2;
          return Math.min(0.5, 0.11 * Math.sqrt(sum));
        })),
        lens: { kl: [0, ...weight].map((_, l) => 2.4 * (1 - l / layers) ** (1 + scheme.used)), agreement: [0, ...weight].map((_, l) => (l / layers) ** (2 * scheme.used)) },
      });
    }
  }
  const order = [...chosen].sort((a, b) => a.loss - b.loss), deepest = depths.at(-1);
  return {
    norma: "0.1.0", kind: "study", created: "2026-01-01T00:00:00Z", seconds: 151.2,
    command: "node web/sample/sample.mjs", config: "# invented: no run stands behind this page\n[study]\nlayers = [" + depths + "]\nlr = [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2]\nwarmup = [0, 100, 400]\nseeds = " + seeds + "\n",
    environment: { norma: "0.1.0", commit: "0000000", compiler: "invented", cpu: "invented", instruction_set: "invented", cores: 2, memory_bytes: 0, kernel: "invented", time: "2026-01-01T00:00:00Z", command_line: [] },
    task: { name: "sample", optimum: 1.42, unigram: 3.1, description: "INVENTED SAMPLE DATA. No run stands behind these numbers." },
    schemes: chosen.map((scheme, i) => ({
      name: scheme.name, title: scheme.title, source: scheme.source,
      formulas: { sublayer: scheme.sublayer, ...(scheme.final ? { final: scheme.final } : {}), ...(scheme.constants ?? {}) },
      diagram_svg: golden(scheme.name, "svg") ?? "", diagram_text: golden(scheme.name, "txt") ?? "",
      layers: deepest, norm_instances: 2 * deepest + (scheme.final ? 1 : 0), norm_parameters: 256 * (2 * deepest + (scheme.final ? 1 : 0)), parameters: 4_812_000 + 1000 * i,
    })),
    inspect: [
      analysis(random, chosen, "gradient", "Gradient norm of the last layer", "Frobenius norm of the loss gradient with respect to the last feed-forward matrix at initialisation, mean over five seeds and eight batches.",
        "Xiong et al. 2020", [6, 12, 24, 48, 96], (s, n) => s.gradient[0] * n ** s.gradient[1], (s) => s.gradient[1],
        (s, k, n) => s.gradient[0] * n ** s.gradient[1] * (s.gradient[1] < -0.3 && s.stream > 0 ? Math.sqrt(n / (1 + k / 2)) : 1)),
      analysis(random, chosen, "activation", "Size of the residual stream at the output", "Root mean square of the stream after the last sublayer, before any final norm, at initialisation.",
        "Xiong et al. 2020, lemma 2", [6, 12, 24, 48, 96], (s, n) => (1 + n / 1.5) ** s.stream, (s) => s.stream, (s, k) => (1 + k / 3) ** s.stream),
      analysis(random, chosen, "amplification", "Output change for a small change of all weights", "Squared change per token of the normalised output when every weight moves by ±1e-4.",
        "Liu et al. 2020", [2, 5, 10, 25, 50, 100], (s, n) => s.amplification(2 * n), (s) => ({ post: 1, pre: 0.3, admin: 0.3, peri: 0.25, lns: 0.25 })[s.name] ?? 0.02,
        (s, k) => s.amplification(k), { x: "layers" }),
      analysis(random, chosen, "update", "Output change of the first optimiser step", "Root mean square change of the normalised output after one SGD step of size 1e-3.",
        "Wang et al. 2022", [2, 10, 50, 100], (s, n) => 3e-3 * (s.amplification(2 * n) / 2.5e-4) ** 0.8, (s) => ({ post: 0.9, pre: 0.6, admin: 0.5, peri: 0.5, lns: 0.4, deepnorm: 0.2 })[s.name] ?? 0,
        (s, k) => 1e-3 * k ** 0.2),
    ],
    depth_use, runs, maps, tuned, extra_rates: [], comparisons: order.slice(1).map((scheme, i) => ({ a: scheme.name, b: order[0].name, difference: estimate([0.01 * i, 0.01 * i + 0.004]), p: 0.2 / (i + 1), adjusted_p: 0.9 / (i + 1), apart: i > 3 })),
    course: { budget: "180s", tokens: 1e7, rounds: [{ stage: "map", steps, runs: runs.length, seeds: [1], why: "where each scheme is stable" }] },
    verdicts: order.map((scheme, i) => ({
      scheme: scheme.name, rank: i + 1,
      verdict: scheme.name === "post" ? "needs warmup" : scheme.name === "rezero" ? "narrow" : "stable",
      words: scheme.name === "post" ? `Trains at ${deepest} layers only with ${scheme.warmup} steps of warmup and a learning rate ten times smaller than the others.`
        : scheme.name === "pre" ? "Trains at every learning rate tried, but its last third can be removed at little cost."
        : scheme.name === "rezero" ? "Stable, reaches the target later than every scheme that starts with its branches on."
        : `No run diverged below a learning rate of ${scheme.lr}; warmup does not change its loss.`,
      evidence: [{ text: "held-out loss", value: scheme.loss, low: scheme.loss - 0.01, high: scheme.loss + 0.01 }, { text: "gradient exponent", value: scheme.gradient[1], low: scheme.gradient[1] - 0.06, high: scheme.gradient[1] + 0.07 }],
    })),
    advice: { words: `Invented advice: use Keel or Peri-LN at ${deepest} layers; both train without warmup at learning rates up to 1e-2. DeepNorm is as good with a third of the learning rate.`,
              ranking: order.map((s) => s.name), confidence: `Ranks 1 to 4 are within one interval of each other over ${seeds} seeds.`,
              not_tested: ["more than " + deepest + " layers", "widths other than 128", "real text"] },
    notes: ["Invented sample: no run stands behind this page.", "LayerNorm Scaling did not beat Pre-LN by more than two standard errors."],
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const seeds = Number(process.argv[2] ?? 1);
  process.stdout.write(JSON.stringify(sample({ seeds })));
}
