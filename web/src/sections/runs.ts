// Loss curves of all runs, with a cross where one diverged, and the final loss against the learning rate.
import { LineChart, type Series } from "../components/chart";
import { choice, select, toggle } from "../components/controls";
import { h, type Child } from "../components/dom";
import { figure } from "../components/figure";
import { legend } from "../components/legend";
import { exact, table } from "../components/table";
import { Context, depthsOf } from "../context";
import { ends, groupWords, kUntold, rangedOf } from "../data/compare";
import { formatNumber, formatShort, nameList } from "../data/format";
import type { Run, Tuned } from "../data/results";
import { isHidden, onVisibilityChange } from "../state";

interface Filter {
  layers: number | null;
  lr: number | null;
  warmup: number | null;
  only: "all" | "tuned";
}

const distinct = (values: number[]): number[] => [...new Set(values)].filter(Number.isFinite).sort((a, b) => a - b);

function tunedRuns(context: Context, runs: Run[]): Run[] {
  const best = new Set(context.results.tuned.map((item) => `${item.scheme}|${item.layers}|${item.lr}|${item.warmup}`));
  const finals = new Set(runs.filter((run) => run.stage === "final").map((run) => run.scheme));
  return runs.filter((run) => best.has(`${run.scheme}|${run.layers}|${run.lr}|${run.warmup}`) && (run.stage === "final" || !finals.has(run.scheme)));
}

const settings = (run: Run): string =>
  [["layers", run.layers], ["lr", run.lr], ["warmup", run.warmup], ["seed", run.seed]].filter(([, value]) => Number.isFinite(value as number)).map(([name, value]) => `${name} ${formatShort(value as number)}`).join(", ");

export function runsFigure(context: Context): HTMLElement {
  const runs = context.sorted(context.results.runs);
  const depths = depthsOf(runs), lrs = distinct(runs.map((run) => run.lr)), warmups = distinct(runs.map((run) => run.warmup));
  const hasTuned = tunedRuns(context, runs).length > 0;
  const filter: Filter = { layers: depths.length > 1 ? depths.at(-1)! : null, lr: null, warmup: null, only: hasTuned ? "tuned" : "all" };
  const chart = new LineChart(), side = h("div"), said = h("p", { class: "filtered", role: "status" });
  let xLog = false, yLog = false;

  const chosen = (): Run[] => (filter.only === "tuned" ? tunedRuns(context, runs) : runs).filter((run) =>
    (filter.layers === null || run.layers === filter.layers) && (filter.only === "tuned" || ((filter.lr === null || run.lr === filter.lr) && (filter.warmup === null || run.warmup === filter.warmup))));
  const draw = (): void => {
    const shown = chosen().filter((run) => !isHidden(run.scheme)), lost = shown.filter((run) => run.diverged).length;
    said.textContent = `${shown.length} of ${runs.length} runs shown${lost > 0 ? `, ${lost} diverged` : ""}.`;
    const { optimum, unigram } = context.results.task;
    const rules = [{ y: optimum, label: `optimum ${formatNumber(optimum)}` }, { y: unigram, label: `unigram ${formatNumber(unigram)}` }].filter((rule) => Number.isFinite(rule.y));
    chart.draw({
      label: `Training loss by step, ${shown.length} runs`, xLabel: "step", yLabel: "loss", xLog, yLog, height: 420, marks: shown.length > 24 ? "faint" : "lines", read: "nearest", rules, yCap: cap(shown),
    }, shown.map((run) => series(context, run)));
  };
  const redrawSide = (): void => side.replaceChildren(runLegend(context, chosen()));
  const change = (): void => { redrawSide(); draw(); };

  const any = (values: number[], format: (value: number) => string) => [{ value: null as number | null, text: "all" }, ...values.map((value) => ({ value: value as number | null, text: format(value) }))];
  const lrSelect = select("Learning rate", any(lrs, formatShort), (value) => { filter.lr = value; change(); });
  const warmupSelect = select("Warmup", any(warmups, formatShort), (value) => { filter.warmup = value; change(); });
  lrSelect.hidden = warmupSelect.hidden = filter.only === "tuned";
  const controls: Child[] = [];
  if (hasTuned) {
    controls.push(choice("Runs", [{ value: "tuned", text: "best setting" }, { value: "all", text: "all" }], filter.only, (value) => {
      filter.only = value;
      lrSelect.hidden = warmupSelect.hidden = value === "tuned";
      change();
    }));
  }
  if (depths.length > 1) controls.push(select("Layers", any(depths, String), (value) => { filter.layers = value; change(); }, depths.length));
  controls.push(lrSelect, warmupSelect, toggle("log x", xLog, (on) => { xLog = on; draw(); }), toggle("log y", yLog, (on) => { yLog = on; draw(); }));
  onVisibilityChange(chart.element, draw);
  redrawSide();
  queueMicrotask(draw);
  return figure({
    id: "loss-curves", title: "Loss curves", takeaway: takeaway(context, runs), controls,
    body: [said, h("div", { class: "with-legend" }, chart.element, side)],
    about: "Training loss of each run. A cross marks the step at which a run was found to have diverged; its curve ends there. Point at a curve, or use the arrow keys, to read a run.",
    data: () => numbers(context, runs),
  });
}

function series(context: Context, run: Run): Series {
  const view = context.scheme(run.scheme);
  const note = [settings(run), run.diverged ? `diverged at step ${formatNumber(run.divergedAtStep)}${run.divergedBecause ? `: ${run.divergedBecause}` : ""}${run.firstBadWire ? ` (first at ${run.firstBadWire})` : ""}` : `final loss ${formatNumber(run.finalLoss)}`].join("; ");
  const last = run.curve.step.at(-1) ?? NaN;
  return {
    key: run.id, scheme: run.scheme, label: view.label, look: view.look, x: run.curve.step, y: run.curve.loss, note,
    ...(run.diverged ? { divergedAt: Number.isFinite(run.divergedAtStep) ? run.divergedAtStep : last } : {}),
  };
}

// Where an untrained model stands; bursts above it are not worth the space.
function cap(runs: Run[]): number {
  const starts = runs.map((run) => run.curve.loss.find(Number.isFinite) ?? NaN).filter(Number.isFinite).sort((a, b) => a - b);
  const middle = starts[Math.floor(starts.length / 2)];
  return middle === undefined ? Infinity : middle * 1.25;
}

function runLegend(context: Context, runs: Run[]): HTMLElement {
  const groups = new Map<string, Run[]>();
  for (const run of runs) groups.set(run.scheme, [...(groups.get(run.scheme) ?? []), run]);
  return legend(["Best final", "Diverged"], [...groups].map(([name, group]) => {
    const view = context.scheme(name), finals = group.filter((run) => !run.diverged && Number.isFinite(run.finalLoss)).map((run) => run.finalLoss);
    const best = finals.length > 0 ? Math.min(...finals) : NaN;
    return { scheme: name, label: view.label, look: view.look, values: [exact(best), `${group.filter((run) => run.diverged).length} of ${group.length}`] };
  }), null, "dashed");
}

function takeaway(context: Context, runs: Run[]): string {
  const lost = runs.filter((run) => run.diverged).length;
  const finished = runs.filter((run) => !run.diverged && Number.isFinite(run.finalLoss)).sort((a, b) => a.finalLoss - b.finalLoss);
  const best = finished[0];
  const first = `${lost} of ${runs.length} runs diverged.`;
  return best ? `${first} The lowest final loss is ${formatNumber(best.finalLoss)}, ${context.scheme(best.scheme).label} with ${settings(best)}.` : first;
}

function numbers(context: Context, runs: Run[]): HTMLElement {
  const number = (title: string, read: (run: Run) => number, format: (value: number) => string = formatNumber) =>
    ({ title, numeric: true, cell: (run: Run) => exact(read(run), format(read(run))), sort: read });
  return table("All runs", [
    { title: "Run", head: true, cell: (run) => run.id, sort: (run) => run.id },
    { title: "Scheme", cell: (run) => context.scheme(run.scheme).label, sort: (run) => run.scheme },
    number("Layers", (run) => run.layers), number("Width", (run) => run.width), number("lr", (run) => run.lr, formatShort), number("Warmup", (run) => run.warmup), number("Seed", (run) => run.seed),
    number("Final loss", (run) => run.finalLoss), number("Best loss", (run) => run.bestLoss), number("Evaluation loss", (run) => run.evaluationLoss),
    { title: "Diverged", cell: (run) => (run.diverged ? h("span", {}, "✕ at ", exact(run.divergedAtStep)) : "no"), sort: (run) => (run.diverged ? run.divergedAtStep : Infinity) },
    { title: "Why", cell: (run) => [run.divergedBecause, run.firstBadWire].filter(Boolean).join("; ") },
    number("Tokens/s", (run) => run.tokensPerSecond, (value) => formatNumber(Math.round(value))),
  ], runs);
}

// The final loss against the learning rate, each at its best warmup: how wide the range is in which a scheme trains.
export function sensitivityFigure(context: Context): HTMLElement | null {
  const maps = context.sorted(context.results.maps).filter((map) => map.x.name === "lr" && map.x.values.length > 1);
  if (maps.length === 0) return null;
  const depths = depthsOf(maps), chart = new LineChart();
  let layers = depths.at(-1) ?? NaN, yLog = false;
  const lines = (): Series[] => maps.filter((map) => map.layers === layers).map((map) => {
    const view = context.scheme(map.scheme);
    const cells = map.x.values.map((_, j) => map.loss.map((row, i) => ({ loss: row[j]!, share: map.diverged[i]?.[j] ?? 0 }))
      .filter((cell) => cell.loss && cell.share === 0 && Number.isFinite(cell.loss.mean)).sort((a, b) => a.loss.mean - b.loss.mean)[0]?.loss);
    const lost = cells.findIndex((cell, j) => j > 0 && !cell && cells[j - 1]);
    return {
      key: map.scheme, scheme: map.scheme, label: view.label, look: view.look, x: map.x.values, y: cells.map((cell) => cell?.mean ?? NaN),
      ...(cells.some((cell) => (cell?.n ?? 0) > 1) ? { low: cells.map((cell) => cell?.low ?? NaN), high: cells.map((cell) => cell?.high ?? NaN) } : {}),
      ...(lost > 0 ? { divergedAt: map.x.values[lost]!, crossAt: "top" as const } : {}),
    };
  });
  const draw = (): void => {
    const shown = lines().filter((one) => !isHidden(one.scheme));
    const finite = shown.flatMap((one) => one.y).filter(Number.isFinite).sort((a, b) => a - b);
    const xTicks = [...new Set(shown.flatMap((one) => [...one.x]))].sort((a, b) => a - b);
    chart.draw({ label: `Final loss by learning rate at ${layers} layers`, xLabel: "learning rate", yLabel: "final loss", xLog: true, yLog, marks: "points", read: "column", xTicks, yCap: (finite[Math.floor(finite.length * 0.95)] ?? Infinity) * 1.2 }, shown);
  };
  onVisibilityChange(chart.element, draw);
  queueMicrotask(draw);
  const side = h("div");
  const fill = (): void => {
    const tuned = context.results.tuned.filter((item) => item.layers === layers);
    side.replaceChildren(legend(["Best lr", "Sensitivity"], lines().map((one) => {
      const best = tuned.find((item) => item.scheme === one.scheme);
      return { scheme: one.scheme, label: one.label, look: one.look, values: best ? [exact(best.lr, formatShort(best.lr)), sensitivityCell(context, best, 2)] : ["–", "–"] };
    }), ["A cross: no warmup tried at this rate kept every seed.", idleWords(context, lines())].filter(Boolean).join(" ")));
  };
  fill();
  const controls: Child[] = depths.length > 1 ? [choice("Layers", depths.map((value) => ({ value, text: String(value) })), layers, (value) => { layers = value; fill(); draw(); })] : [];
  controls.push(toggle("log y", yLog, (on) => { yLog = on; draw(); }));
  return figure({
    id: "sensitivity", title: "Sensitivity to the learning rate", controls,
    takeaway: sensitivityWords(context, layers),
    body: [h("div", { class: "with-legend" }, chart.element, side)],
    about: "Final loss at each learning rate, with the warmup that was best there among those where no seed diverged. Sensitivity is the mean excess of the loss over its best, at the best warmup and " +
      `over the learning rates ${context.results.kind === "study" ? "that all schemes share" : "tried"} (Wortsman et al. 2023).`,
    data: () => table("Best settings", [
      { title: "Scheme", head: true, cell: (item) => context.scheme(item.scheme).label },
      { title: "Layers", numeric: true, cell: (item) => exact(item.layers) },
      { title: "lr", numeric: true, cell: (item) => exact(item.lr, formatShort(item.lr)) },
      { title: "Warmup", numeric: true, cell: (item) => exact(item.warmup) },
      { title: "Loss", numeric: true, cell: (item) => exact(item.loss.mean) },
      { title: "Sensitivity", numeric: true, cell: (item) => sensitivityCell(context, item) },
      { title: "Largest stable lr", numeric: true, cell: (item) => rateCell(context, item, item.largestStableLr) },
      { title: "Without warmup", numeric: true, cell: (item) => rateCell(context, item, item.largestStableLrWithoutWarmup) },
      { title: "Steps to target", numeric: true, cell: (item) => exact(item.stepsToTarget.mean) },
      { title: "Target", numeric: true, cell: (item) => exact(item.target) },
    ], context.sorted(context.results.tuned)),
  });
}

// A scheme that does not train is level everywhere; that is not steadiness.
const sensitivityCell = (context: Context, of: Tuned, digits = 4): Child => (context.trains(of.scheme) ? exact(of.sensitivity.mean, formatNumber(of.sensitivity.mean, digits)) : "–");
const rateCell = (context: Context, of: Tuned, rate: number): Child => (context.trains(of.scheme) ? exact(rate, formatShort(rate)) : "–");

function idleWords(context: Context, lines: Series[]): string {
  const idle = lines.filter((one) => !context.trains(one.scheme)).map((one) => one.label);
  return idle.length > 0 ? `No sensitivity where a scheme does not train: ${nameList(idle)}.` : "";
}

function sensitivityWords(context: Context, layers: number): string {
  const known = context.results.tuned.filter((item) => item.layers === layers && context.trains(item.scheme) && Number.isFinite(item.sensitivity.mean))
    .map((item) => rangedOf(context.scheme(item.scheme).label, item.sensitivity));
  if (known.length < 2) return "";
  const found = ends(known), say = (value: number): string => formatNumber(value, 2);
  return found ? `At ${layers} layers least sensitive: ${groupWords(found.lowest, say)}; most: ${groupWords(found.highest, say)}.` : `At ${layers} layers the schemes' sensitivities are ${kUntold}.`;
}
