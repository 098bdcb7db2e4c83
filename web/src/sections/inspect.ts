// Analyses: what is measured against depth, with theory and exponents, and by place in the stack.
import { LineChart, type Series } from "../components/chart";
import { choice, select, toggle } from "../components/controls";
import { h, slug, type Child } from "../components/dom";
import { figure } from "../components/figure";
import { legend } from "../components/legend";
import { exact, table } from "../components/table";
import type { Context } from "../context";
import { formatExponent, formatNumber, formatShort } from "../data/format";
import type { Analysis, AnalysisSeries, Exponent } from "../data/results";
import { leastOf } from "../data/rounding";
import { isHidden, onVisibilityChange } from "../state";
import { alongSites, sitesWords, takeaway, zeroLines } from "./inspect_words";

type View = "depth" | "place" | "values";

export function inspectFigure(context: Context, analysis: Analysis): HTMLElement {
  const lines = context.sorted(analysis.series);
  const depths = [...new Set(lines.flatMap((line) => [...line.profiles, ...line.histograms].map((one) => one.depth)))].filter(Number.isFinite).sort((a, b) => a - b);
  const hasPlaces = lines.some((line) => line.profiles.length > 0), hasValues = lines.some((line) => line.histograms.length > 0);
  const hasDepth = lines.some((line) => line.x.length > 0);
  const chart = new LineChart(), side = h("div");
  const yLabel = analysis.unit, yZero = leastOf(analysis.name);
  let view: View = hasDepth ? "depth" : hasPlaces || !hasValues ? "place" : "values", depth = depths.at(-1) ?? NaN, xLog = analysis.log, yLog = analysis.log;

  const draw = (): void => {
    const shown = lines.filter((line) => !isHidden(line.scheme));
    if (view === "depth") {
      chart.draw({
        label: `${analysis.title} against ${analysis.x}`, xLabel: analysis.x, yLabel, xLog, yLog, yZero, marks: "points", read: "column",
        xTicks: [...new Set(lines.flatMap((line) => line.x))].sort((a, b) => a - b),
      }, shown.map((line) => overDepth(context, line)));
      return;
    }
    if (view === "values") {
      chart.draw({
        label: `Distribution of singular values in a stack of ${depth} layers`, xLabel: "singular value", yLabel: "share", xLog: true, yLog: false, marks: "points", read: "column",
      }, overValues(context, shown, depth));
      return;
    }
    const sites = lines.flatMap((line) => line.profiles).find((profile) => profile.depth === depth)?.sites ?? [];
    chart.draw({
      label: `${analysis.title} by place in a stack of ${depth} layers`, xLabel: "place", yLabel, xLog: false, yLog, yZero, marks: sites.length > 40 ? "lines" : "points", read: "column",
      xName: (x) => (sites.length > 0 ? (sites[x - 1] ?? String(x)) : String(x)), xTicks: placeTicks(sites.length),
    }, shown.flatMap((line) => overPlaces(context, line, depth)));
  };

  const depthSelect = select("Layers", depths.map((value) => ({ value, text: String(value) })), (value) => { depth = value; draw(); }, depths.length - 1);
  const xSwitch = toggle("log x", xLog, (on) => { xLog = on; draw(); });
  const ySwitch = toggle("log y", yLog, (on) => { yLog = on; draw(); });
  const fill = (): void => side.replaceChildren(legendOf(context, analysis, lines, view));
  const arrange = (): void => {
    depthSelect.hidden = view === "depth";
    xSwitch.hidden = view !== "depth";
    ySwitch.hidden = view === "values";
  };
  arrange();
  const controls: Child[] = [];
  if (hasDepth && depths.length > 0) {
    const views: { value: View; text: string }[] = [{ value: "depth", text: `by ${analysis.x}` }];
    if (hasPlaces) views.push({ value: "place", text: "by place" });
    if (hasValues) views.push({ value: "values", text: "singular values" });
    controls.push(choice("View", views, view, (value) => {
      view = value;
      arrange();
      fill();
      draw();
    }));
  }
  if (depths.length > 0) controls.push(depthSelect);
  controls.push(xSwitch, ySwitch);
  fill();
  onVisibilityChange(chart.element, draw);
  queueMicrotask(draw);
  const said = takeaway(context, analysis, lines);
  return figure({
    id: slug(analysis.name || analysis.title), title: analysis.title, takeaway: said.length > 0 ? h("span", { class: "lines" }, ...said.map((line) => h("span", {}, line))) : null, controls,
    body: [h("div", { class: "with-legend" }, chart.element, side)],
    about: [analysis.about, analysis.source ? `Source: ${analysis.source}.` : ""].filter(Boolean).join(" "),
    data: () => numbers(context, analysis, lines),
  });
}

// Exponents stand beside the view whose slope they are.
function legendOf(context: Context, analysis: Analysis, lines: AnalysisSeries[], view: View): HTMLElement {
  const mine = view === (alongSites(analysis) ? "place" : "depth"), zero = zeroLines(analysis, lines);
  const withExponent = mine && lines.some((line) => line.exponent), withTheory = mine && lines.some((line) => Number.isFinite(line.theory?.exponent ?? NaN));
  const foot = [withExponent && alongSites(analysis) ? `Exponent: along ${sitesWords(lines)}, the deepest.` : "", lines.some((line) => line.theory) ? "Broken lines: theory." : "",
    lines.some((line) => line.y.some((y) => y.n > 1)) ? "Bands: 95 % interval over seeds." : "", unresolvedWords(context, lines)];
  return legend([...(withExponent ? ["Exponent"] : []), ...(withTheory ? ["Theory"] : [])], lines.map((line) => {
    const { label, look } = context.scheme(line.scheme);
    return {
      scheme: line.scheme, label, look,
      values: [...(withExponent ? [exponentCell(zero.has(line) ? null : line.exponent)] : []),
        ...(withTheory ? [line.theory ? exact(line.theory.exponent, formatExponent(line.theory.exponent)) : "–"] : [])],
    };
  }), foot.filter(Boolean).join(" "));
}

function exponentCell(exponent: Exponent | null): Child {
  if (!exponent) return "–";
  const ranged = exponent.low !== exponent.high && Number.isFinite(exponent.low) && Number.isFinite(exponent.high);
  return h("span", { title: ranged ? `95 % interval ${formatExponent(exponent.low)} to ${formatExponent(exponent.high)}` : null },
    exact(exponent.value, formatExponent(exponent.value)), ranged ? h("small", { class: "interval" }, ` ±${((exponent.high - exponent.low) / 2).toFixed(2)}`) : null);
}

function overDepth(context: Context, line: AnalysisSeries): Series {
  const view = context.scheme(line.scheme), some = line.y.some((y) => y.n > 1);
  return {
    key: line.scheme, scheme: line.scheme, label: view.label, look: view.look, x: line.x, y: line.x.map((_, i) => line.y[i]?.mean ?? NaN),
    ...(some ? { low: line.x.map((_, i) => line.y[i]?.low ?? NaN), high: line.x.map((_, i) => line.y[i]?.high ?? NaN) } : {}),
    ...(line.theory && line.theory.y.length > 0 ? { theory: line.x.map((_, i) => line.theory!.y[i] ?? NaN) } : {}),
  };
}

function overPlaces(context: Context, line: AnalysisSeries, depth: number): Series[] {
  const view = context.scheme(line.scheme);
  return line.profiles.filter((profile) => profile.depth === depth).map((profile) => ({
    key: line.scheme, scheme: line.scheme, label: view.label, look: view.look, x: profile.y.map((_, i) => i + 1), y: profile.y.map((y) => y.mean),
    ...(profile.y.some((y) => y.n > 1) ? { low: profile.y.map((y) => y.low), high: profile.y.map((y) => y.high) } : {}),
    ...(profile.theory.length > 0 ? { theory: profile.y.map((_, i) => profile.theory[i] ?? NaN) } : {}),
  }));
}

// Shares by the middle of their bin; bins that are empty for all are left out.
function overValues(context: Context, lines: AnalysisSeries[], depth: number): Series[] {
  const found = lines.flatMap((line) => line.histograms.filter((one) => one.depth === depth).map((one) => ({ line, one })));
  const filled = found.flatMap(({ one }) => one.share.flatMap((share, i) => (share.mean > 0 ? [i] : [])));
  const first = Math.min(...filled), last = Math.max(...filled);
  return found.map(({ line, one }) => {
    const view = context.scheme(line.scheme), share = one.share.slice(first, last + 1);
    return {
      key: line.scheme, scheme: line.scheme, label: view.label, look: view.look, x: share.map((_, i) => Math.sqrt((one.edges[first + i] ?? NaN) * (one.edges[first + i + 1] ?? NaN))), y: share.map((y) => y.mean),
      ...(share.some((y) => y.n > 1) ? { low: share.map((y) => y.low), high: share.map((y) => y.high) } : {}),
    };
  });
}

// What the distribution of the deepest stacks leaves out.
function unresolvedWords(context: Context, lines: AnalysisSeries[]): string {
  const said = lines.flatMap((line) => {
    const one = line.histograms.at(-1);
    return one?.unresolved && one.unresolved.mean > 0 ? [`${context.scheme(line.scheme).label} ${formatShort(Math.round(100 * one.unresolved.mean))} % below ${formatNumber(one.unresolvedBelow, 2)}`] : [];
  });
  return said.length > 0 ? `Not resolved by projections, at the largest depth: ${said.join(", ")}.` : "";
}

const placeTicks = (count: number): number[] => {
  const step = Math.max(1, Math.ceil(count / 6));
  return Array.from({ length: Math.ceil(count / step) }, (_, i) => 1 + i * step);
};

function numbers(context: Context, analysis: Analysis, lines: AnalysisSeries[]): HTMLElement {
  const rows = lines.flatMap((line) => line.x.map((x, i) => ({ line, x, y: line.y[i], theory: line.theory?.y[i] ?? NaN })));
  return table(analysis.title, [
    { title: "Scheme", head: true, cell: (row) => context.scheme(row.line.scheme).label, sort: (row) => row.line.scheme },
    { title: analysis.x, numeric: true, cell: (row) => exact(row.x, formatShort(row.x)), sort: (row) => row.x },
    { title: "Mean", numeric: true, cell: (row) => exact(row.y?.mean ?? NaN), sort: (row) => row.y?.mean ?? NaN },
    { title: "Low", numeric: true, cell: (row) => exact(row.y?.low ?? NaN) },
    { title: "High", numeric: true, cell: (row) => exact(row.y?.high ?? NaN) },
    { title: "Seeds", numeric: true, cell: (row) => exact(row.y?.n ?? NaN) },
    { title: "Theory", numeric: true, cell: (row) => exact(row.theory), sort: (row) => row.theory },
  ], rows);
}
