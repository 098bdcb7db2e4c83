// The numbers of results.json as flat tables, for spreadsheets and scripts.
import { firstIndex, type Estimate, type PerLayer, type Results } from "./results";

export type Cell = string | number;
export interface Sheet {
  name: string;
  about: string;
  head: string[];
  rows: () => Cell[][];
  count: number;
}

// A spreadsheet runs text that begins like a formula, also behind spaces and what is not seen; a quote before it keeps it
// text.
function cell(value: Cell): string {
  if (typeof value === "number") return Number.isNaN(value) ? "nan" : value === Infinity ? "inf" : value === -Infinity ? "-inf" : String(value);
  const safe = /^[\s\p{Cc}\p{Cf}]*[=+\-@\uff1d\uff0b\uff0d\uff20]|^[\t\r\n]/u.test(value) ? `'${value}` : value;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export const csv = (sheet: Sheet): string => [sheet.head, ...sheet.rows()].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";

const spread = (of: Estimate): Cell[] => [of.mean, of.low, of.high, of.n];
const kSpread = ["mean", "low", "high", "n"];

export function sheets(results: Results): Sheet[] {
  const all: Sheet[] = [
    {
      name: "verdicts", about: "rank, verdict and words per scheme", head: ["rank", "scheme", "verdict", "words"], count: results.verdicts.length,
      rows: () => results.verdicts.map((v) => [v.rank, v.scheme, v.verdict, v.words]),
    },
    {
      name: "inspect", about: "analyses at initialisation by depth, with theory", head: ["analysis", "scheme", "x", ...kSpread, "theory"], count: results.inspect.length,
      rows: () => results.inspect.flatMap((a) => a.series.flatMap((line) => line.x.map((x, i) =>
        [a.name, line.scheme, x, ...spread(line.y[i] ?? kNothing), line.theory?.y[i] ?? NaN]))),
    },
    {
      name: "profiles", about: "analyses at initialisation by place in the stack", head: ["analysis", "scheme", "depth", "site", ...kSpread, "theory"],
      count: results.inspect.reduce((sum, a) => sum + a.series.reduce((inner, line) => inner + line.profiles.length, 0), 0),
      rows: () => results.inspect.flatMap((a) => a.series.flatMap((line) => line.profiles.flatMap((p) => p.y.map((y, i) =>
        [a.name, line.scheme, p.depth, p.sites[i] ?? String(i), ...spread(y), p.theory[i] ?? NaN])))),
    },
    {
      name: "histograms", about: "singular values by size; a row of what is unresolved begins at 0", head: ["analysis", "scheme", "depth", "method", "from", "to", ...kSpread],
      count: results.inspect.reduce((sum, a) => sum + a.series.reduce((inner, line) => inner + line.histograms.length, 0), 0),
      rows: () => results.inspect.flatMap((a) => a.series.flatMap((line) => line.histograms.flatMap((one) => {
        const start: Cell[] = [a.name, line.scheme, one.depth, one.exact ? "exact" : "projections"];
        const bins = one.share.map((share, i) => [...start, one.edges[i] ?? NaN, one.edges[i + 1] ?? NaN, ...spread(share)]);
        return one.unresolved ? [[...start, 0, one.unresolvedBelow, ...spread(one.unresolved)], ...bins] : bins;
      }))),
    },
    {
      name: "runs", about: "one line per run", count: results.runs.length,
      head: ["id", "scheme", "layers", "width", "lr", "warmup", "seed", "diverged", "diverged_at_step", "diverged_because", "first_bad_wire", "final_loss", "best_loss", "evaluation_loss", "tokens_per_second"],
      rows: () => results.runs.map((r) => [r.id, r.scheme, r.layers, r.width, r.lr, r.warmup, r.seed, String(r.diverged), r.divergedAtStep, r.divergedBecause, r.firstBadWire, r.finalLoss, r.bestLoss, r.evaluationLoss, r.tokensPerSecond]),
    },
    {
      name: "curves", about: "loss by step for every run", head: ["id", "step", "loss"], count: results.runs.length,
      rows: () => results.runs.flatMap((r) => r.curve.step.map((step, i) => [r.id, step, r.curve.loss[i] ?? NaN])),
    },
    {
      name: "maps", about: "stability maps, one line per cell", head: ["scheme", "layers", "x_name", "x", "y_name", "y", ...kSpread, "diverged"], count: results.maps.length,
      rows: () => results.maps.flatMap((m) => m.y.values.flatMap((y, i) => m.x.values.map((x, j) =>
        [m.scheme, m.layers, m.x.name, x, m.y.name, y, ...spread(m.loss[i]?.[j] ?? kNothing), m.diverged[i]?.[j] ?? NaN]))),
    },
    {
      name: "tuned", about: "best setting per scheme and depth", count: results.tuned.length,
      head: ["scheme", "layers", "lr", "warmup", ...kSpread.map((k) => `loss_${k}`), "sensitivity", "largest_stable_lr", "largest_stable_lr_without_warmup", "needs_warmup", ...kSpread.map((k) => `steps_to_target_${k}`), "target"],
      rows: () => results.tuned.map((t) => [t.scheme, t.layers, t.lr, t.warmup, ...spread(t.loss), t.sensitivity.mean, t.largestStableLr, t.largestStableLrWithoutWarmup, t.needsWarmup, ...spread(t.stepsToTarget), t.target]),
    },
    {
      name: "depth_use", about: "measures per layer of trained models", head: ["scheme", "layers", "measure", "layer", ...kSpread], count: results.depthUse.length,
      rows: () => results.depthUse.flatMap((d) => [
        [d.scheme, d.layers, "effective_depth", "", ...spread(d.effectiveDepth)],
        ...(Object.keys(d.perLayer) as PerLayer[]).flatMap((measure) => d.perLayer[measure].map((y, i) => [d.scheme, d.layers, measure, i + firstIndex(measure), ...spread(y)])),
        ...d.curve.layersKept.map((kept, i) => [d.scheme, d.layers, "loss_with_layers_kept", kept, d.curve.loss[i] ?? NaN, NaN, NaN, 1]),
      ]),
    },
  ];
  return all.filter((sheet) => sheet.count > 0);
}

const kNothing: Estimate = { mean: NaN, low: NaN, high: NaN, n: 0 };
