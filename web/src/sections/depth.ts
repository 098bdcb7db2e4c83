// How much of its depth a trained model uses: effective depth, loss with layers removed, measures per layer, and how
// alike the states of different layers are.
import { LineChart, type Series } from "../components/chart";
import { choice, select, toggle } from "../components/controls";
import { h, type Child } from "../components/dom";
import { figure } from "../components/figure";
import { heatmap } from "../components/heatmap";
import { legend } from "../components/legend";
import { rampColour, swatch } from "../components/palette";
import { exact, table } from "../components/table";
import { Context, depthsOf } from "../context";
import { ends, groupWords, kUntold, rangedOf } from "../data/compare";
import { formatInterval, formatNumber } from "../data/format";
import { firstIndex, type DepthUse, type PerLayer } from "../data/results";
import { isHidden, onVisibilityChange } from "../state";

const kMeasures: { value: PerLayer; text: string; about: string; x?: string }[] = [
  { value: "deletion", text: "loss when the layer is removed", about: "Rise of the loss when one layer is taken out, without further training." },
  { value: "influence", text: "block influence", about: "One minus the mean cosine between a layer's input and output." },
  { value: "swap", text: "loss when swapped with the next", about: "Rise of the loss when a layer and the next change places." },
  { value: "width_equivalence", text: "loss when run beside the next", about: "Rise of the loss when two layers read the same input, as one wider layer would." },
  { value: "lens_kl", text: "distance of the early answer", about: "Divergence between the answer read off after this layer and the final one (logit lens).", x: "after layer" },
  { value: "lens_agreement", text: "agreement of the early answer", about: "Share of tokens whose most likely answer after this layer is already the final one.", x: "after layer" },
  { value: "probe", text: "accuracy of a linear probe", about: "Accuracy of a linear classifier that reads the stream after this layer.", x: "after layer" },
  { value: "path_length", text: "share of the gradient by path length", about: "Share of the gradient that comes through paths of this many branches.", x: "path length" },
];

// One control for the depth of the models, where there are several.
function depthChoice(depths: number[], start: number, change: (layers: number) => void): Child[] {
  return depths.length > 1 ? [choice("Layers", depths.map((value) => ({ value, text: String(value) })), start, change)] : [];
}

export function depthFigures(context: Context): (() => HTMLElement)[] {
  const items = context.sorted(context.results.depthUse), figures: (() => HTMLElement)[] = [];
  if (items.some((item) => Number.isFinite(item.effectiveDepth.mean) || item.curve.loss.length > 0)) figures.push(() => effectiveDepth(context, items));
  if (items.some((item) => Object.values(item.perLayer).some((values) => values.length > 0))) figures.push(() => perLayer(context, items));
  const alike = items.filter((item) => item.angularDistance.length > 0);
  if (alike.length > 0) figures.push(() => similarity(context, alike));
  return figures;
}

function effectiveDepth(context: Context, items: DepthUse[]): HTMLElement {
  const depths = depthsOf(items), chart = new LineChart(), side = h("div");
  let layers = depths.at(-1) ?? NaN;
  const here = (): DepthUse[] => items.filter((item) => depths.length === 0 || item.layers === layers);
  const draw = (): void => {
    chart.draw({ label: `Loss with layers removed, ${layers} layers`, xLabel: "layers kept", yLabel: "loss", xLog: false, yLog: false, marks: "points", read: "column" },
      here().filter((item) => !isHidden(item.scheme) && item.curve.loss.length > 0).map((item): Series => {
        const view = context.scheme(item.scheme);
        return { key: item.scheme, scheme: item.scheme, label: view.label, look: view.look, x: item.curve.layersKept, y: item.curve.layersKept.map((_, i) => item.curve.loss[i] ?? NaN) };
      }));
  };
  const fill = (): void => side.replaceChildren(legend(["Effective depth", "Share"], here().map((item) => {
    const view = context.scheme(item.scheme), of = item.effectiveDepth, share = of.mean / item.layers, shown = formatNumber(of.mean, 3), interval = formatInterval(of, shown);
    return {
      scheme: item.scheme, label: view.label, look: view.look,
      values: [h("span", { title: interval ? `95 % interval ${interval}` : null }, exact(of.mean, shown), ` of ${formatNumber(item.layers)}`),
        h("span", { class: "bar", style: Number.isFinite(share) ? `--share: ${Math.min(1, Math.max(0, share)) * 100}%; --tone: ${view.look.colour}` : null }, Number.isFinite(share) ? `${Math.round(share * 100)} %` : "–")],
    };
  })));
  onVisibilityChange(chart.element, draw);
  fill();
  queueMicrotask(draw);
  return figure({
    id: "effective-depth", title: "Effective depth", controls: depthChoice(depths, layers, (value) => { layers = value; fill(); draw(); }),
    takeaway: depthWords(context, here()),
    body: [h("div", { class: "with-legend" }, chart.element, side)],
    about: "The chart removes the layers of a trained model one after another, those whose removal costs least first, and measures the loss of what is left. Effective depth is the least number of layers that keeps nine tenths of what all layers gain.",
    data: () => table("Effective depth", [
      { title: "Scheme", head: true, cell: (item) => context.scheme(item.scheme).label, sort: (item) => item.scheme },
      { title: "Layers", numeric: true, cell: (item) => exact(item.layers), sort: (item) => item.layers },
      { title: "Effective depth", numeric: true, cell: (item) => exact(item.effectiveDepth.mean), sort: (item) => item.effectiveDepth.mean },
      { title: "Low", numeric: true, cell: (item) => exact(item.effectiveDepth.low) },
      { title: "High", numeric: true, cell: (item) => exact(item.effectiveDepth.high) },
      { title: "Seeds", numeric: true, cell: (item) => exact(item.effectiveDepth.n) },
    ], items),
  });
}

function depthWords(context: Context, items: DepthUse[]): string {
  const known = items.filter((item) => Number.isFinite(item.effectiveDepth.mean)).map((item) => rangedOf(context.scheme(item.scheme).label, item.effectiveDepth));
  if (known.length === 0) return "";
  const say = (value: number): string => formatNumber(value, 3), of = ` of ${items[0]!.layers} layers`, found = ends(known);
  if (known.length === 1) return `${known[0]!.label} uses ${say(known[0]!.value)}${of}.`;
  return found ? `Of ${items[0]!.layers} layers most are used by ${groupWords(found.highest, say)}, fewest by ${groupWords(found.lowest, say)}.` : `The schemes' use${of} is ${kUntold}.`;
}

function perLayer(context: Context, items: DepthUse[]): HTMLElement {
  const depths = depthsOf(items), chart = new LineChart(), about = h("span");
  const measures = kMeasures.filter((measure) => items.some((item) => item.perLayer[measure.value].length > 0));
  let layers = depths.at(-1) ?? NaN, measure = measures[0]!, yLog = false;
  const here = (): DepthUse[] => items.filter((item) => (depths.length === 0 || item.layers === layers) && item.perLayer[measure.value].length > 0);
  const draw = (): void => {
    about.textContent = measure.about;
    chart.draw({ label: `${measure.text}, by layer, ${layers} layers`, xLabel: measure.x ?? "layer", yLabel: measure.text, xLog: false, yLog, marks: "points", read: "column" },
      here().filter((item) => !isHidden(item.scheme)).map((item): Series => {
        const view = context.scheme(item.scheme), values = item.perLayer[measure.value];
        return {
          key: item.scheme, scheme: item.scheme, label: view.label, look: view.look, x: values.map((_, i) => i + firstIndex(measure.value)), y: values.map((value) => value.mean),
          ...(values.some((value) => value.n > 1) ? { low: values.map((value) => value.low), high: values.map((value) => value.high) } : {}),
        };
      }));
  };
  onVisibilityChange(chart.element, draw);
  queueMicrotask(draw);
  const schemes = [...new Set(items.map((item) => item.scheme))];
  return figure({
    id: "layers", title: "What each layer does",
    controls: [select("Measure", measures.map((one) => ({ value: one, text: one.text })), (value) => { measure = value; draw(); }),
      ...depthChoice(depths, layers, (value) => { layers = value; draw(); }), toggle("log y", yLog, (on) => { yLog = on; draw(); })],
    body: [h("div", { class: "with-legend" }, chart.element, legend([], schemes.map((name) => ({ scheme: name, label: context.scheme(name).label, look: context.scheme(name).look }))))],
    about,
    data: () => table("Measures by layer", [
      { title: "Scheme", head: true, cell: (row) => context.scheme(row.item.scheme).label, sort: (row) => row.item.scheme },
      { title: "Layers", numeric: true, cell: (row) => exact(row.item.layers), sort: (row) => row.item.layers },
      { title: "Measure", cell: (row) => row.text, sort: (row) => row.text },
      { title: "Layer", numeric: true, cell: (row) => exact(row.layer), sort: (row) => row.layer },
      { title: "Mean", numeric: true, cell: (row) => exact(row.value.mean), sort: (row) => row.value.mean },
      { title: "Low", numeric: true, cell: (row) => exact(row.value.low) },
      { title: "High", numeric: true, cell: (row) => exact(row.value.high) },
    ], items.flatMap((item) => kMeasures.flatMap(({ value: key, text }) => item.perLayer[key].map((value, i) => ({ item, text, layer: i + firstIndex(key), value }))))),
  });
}

function similarity(context: Context, items: DepthUse[]): HTMLElement {
  const depths = depthsOf(items), grid = h("div", { class: "heatmaps" }), key = h("div", { class: "map-key" });
  let layers = depths.at(-1) ?? NaN;
  const here = (): DepthUse[] => items.filter((item) => depths.length === 0 || item.layers === layers);
  const draw = (): void => {
    const high = here().flatMap((item) => item.angularDistance.flat()).reduce((most, value) => (Number.isFinite(value) && value > most ? value : most), 0) || 1;
    const steps = Array.from({ length: 24 }, (_, i) => `${rampColour(i / 23)} ${(i / 23) * 100}%`).join(", ");
    key.replaceChildren(h("span", {}, "alike, 0"), h("span", { class: "ramp", style: `background: linear-gradient(to right, ${steps})` }), h("span", {}, `${formatNumber(high, 2)}, far apart`));
    grid.replaceChildren(...here().filter((item) => !isHidden(item.scheme)).map((item) => {
      const view = context.scheme(item.scheme);
      return h("div", { class: "heatmap-cell" }, h("h4", {}, swatch(view.look), view.label), heatmap({
        label: `Angular distance between the states of layers, ${view.label}`, values: item.angularDistance, low: 0, high,
        idle: `states 0 to ${item.angularDistance.length - 1}, input at the top left`, name: (row, column) => `states ${row} and ${column}`,
      }));
    }));
  };
  onVisibilityChange(grid, draw);
  draw();
  return figure({
    id: "similarity", title: "Likeness of layers", controls: depthChoice(depths, layers, (value) => { layers = value; draw(); }),
    takeaway: similarityTakeaway(context, here()), body: [key, grid],
    about: "Angular distance, arccos of the cosine divided by pi, between the residual stream at two places, mean over tokens: rows and columns run over the layers from the input. Dark blocks are layers that hardly change the stream.",
    data: () => table("Mean angular distance of a state to the next", [
      { title: "Scheme", head: true, cell: (item) => context.scheme(item.scheme).label },
      { title: "Layers", numeric: true, cell: (item) => exact(item.layers) },
      { title: "Mean step", numeric: true, cell: (item) => exact(meanStep(item)) },
      { title: "All steps", cell: (item) => steps(item).map((value) => formatNumber(value, 3)).join(" ") },
    ], items),
  });
}

// Distances between neighbours: beside the diagonal of a square matrix.
const steps = (item: DepthUse): number[] => item.angularDistance.slice(0, -1).map((row, i) => row[i + 1] ?? NaN).filter(Number.isFinite);
const meanStep = (item: DepthUse): number => {
  const values = steps(item);
  return values.reduce((sum, value) => sum + value, 0) / values.length;
};

function similarityTakeaway(context: Context, items: DepthUse[]): string {
  const ends = items.map((item) => {
    const values = steps(item), third = Math.max(1, Math.floor(values.length / 3));
    const mean = (part: number[]): number => part.reduce((sum, value) => sum + value, 0) / part.length;
    return { label: context.scheme(item.scheme).label, ratio: mean(values.slice(-third)) / mean(values.slice(0, third)) };
  }).filter((end) => Number.isFinite(end.ratio)).sort((a, b) => a.ratio - b.ratio);
  if (ends.length === 0) return "";
  const say = (end: { label: string; ratio: number }): string => `${formatNumber(end.ratio, 2)} times as far as the first in ${end.label}`;
  return ends.length === 1 ? `The last third of the layers turns the stream ${say(ends[0]!)}.` : `The last third of the layers turns the stream ${say(ends[0]!)}, ${say(ends.at(-1)!)}.`;
}
