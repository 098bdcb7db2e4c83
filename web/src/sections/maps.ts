// Stability maps: one small table per scheme, learning rate across, warmup down; darker is better, hatched diverged.
import { choice } from "../components/controls";
import { h, type Child } from "../components/dom";
import { figure } from "../components/figure";
import { rampColour, rampInk, swatch } from "../components/palette";
import { exact, table } from "../components/table";
import { Context, depthsOf } from "../context";
import { formatNumber, formatShort, nameList } from "../data/format";
import type { StabilityMap } from "../data/results";
import { isHidden, onVisibilityChange } from "../state";

interface Count {
  label: string;
  cells: number;
  lost: number;
}
interface Range {
  low: number;
  high: number;
}

export function mapsFigure(context: Context): HTMLElement {
  const maps = context.sorted(context.results.maps), depths = depthsOf(maps);
  const grid = h("div", { class: "maps" }), key = h("div", { class: "map-key" });
  let layers = depths.at(-1) ?? NaN;
  const draw = (): void => {
    const here = maps.filter((map) => depths.length === 0 || map.layers === layers), range = lossRange(here);
    grid.replaceChildren(...here.filter((map) => !isHidden(map.scheme)).map((map) => drawMap(context, map, range)));
    key.replaceChildren(...mapKey(range));
  };
  onVisibilityChange(grid, draw);
  draw();
  const controls: Child[] = depths.length > 1 ? [choice("Layers", depths.map((value) => ({ value, text: String(value) })), layers, (value) => { layers = value; draw(); })] : [];
  return figure({
    id: "stability-maps", title: "Stability maps", takeaway: takeaway(context, maps.filter((map) => map.layers === layers)), controls, body: [key, grid],
    about: "Each cell is the final loss at one learning rate and warmup, mean over the seeds that finished. A hatched cell had seeds that diverged; a cross says all did. The outlined cell is the best of its map. One colour scale for all maps shown, cut off above so that a few bad cells do not flatten the rest.",
    data: () => numbers(context, maps),
  });
}

const shareOf = (map: StabilityMap, i: number, j: number): number => map.diverged[i]?.[j] ?? 0;

// From the best loss to the ninth decile of those that finished.
function lossRange(maps: StabilityMap[]): Range {
  const losses = maps.flatMap((map) => map.loss.flatMap((row) => row.map((cell) => cell.mean))).filter(Number.isFinite).sort((a, b) => a - b);
  const low = losses[0] ?? 0;
  return { low, high: Math.max(losses[Math.floor(losses.length * 0.9)] ?? 1, low + 1e-9) };
}

function drawMap(context: Context, map: StabilityMap, range: Range): HTMLElement {
  const view = context.scheme(map.scheme);
  let best = [-1, -1], bestLoss = Infinity;
  map.loss.forEach((row, i) => row.forEach((cell, j) => {
    if (cell.mean < bestLoss && shareOf(map, i, j) === 0) [best, bestLoss] = [[i, j], cell.mean];
  }));
  const rows = map.y.values.map((warmup, i) => h("tr", {}, h("th", { scope: "row" }, formatShort(warmup)), ...map.x.values.map((lr, j) => {
    const cell = map.loss[i]?.[j], share = shareOf(map, i, j), mean = cell?.mean ?? NaN;
    const at = `${map.x.name} ${formatShort(lr)}, ${map.y.name} ${formatShort(warmup)}`;
    const lost = share > 0 ? `, ${share >= 1 ? "all" : `${formatNumber(share * 100, 2)} % of`} seeds diverged` : "";
    const level = (mean - range.low) / (range.high - range.low);
    const all = share >= 1 || !Number.isFinite(mean);
    return h("td", {
      class: ["cell", share > 0 || all ? "hatched" : "", all ? "lost" : "", i === best[0] && j === best[1] ? "best" : ""].filter(Boolean).join(" "),
      style: all ? null : `--cell: ${rampColour(level)}; --stripe: ${rampInk(level)}; background-color: var(--cell); color: var(--stripe)`,
      title: `${at}: ${all && share < 1 ? "no value" : all ? "" : `loss ${formatNumber(mean)}`}${all ? lost.slice(2) : lost}`,
      "data-diverged": share > 0 ? share : null,
    }, all ? h("span", {}, h("span", { "aria-hidden": "true" }, share >= 1 ? "×" : "–"), h("span", { class: "hidden-text" }, share >= 1 ? "diverged" : "no value")) : exact(mean, mean.toFixed(mean < 10 ? 2 : 1)));
  })));
  return h("table", { class: "map" }, h("caption", {}, swatch(view.look), view.label),
    h("thead", {}, h("tr", {}, h("th", { scope: "col", class: "corner" }, `${map.y.name} \\ ${map.x.name}`), ...map.x.values.map((lr) => h("th", { scope: "col" }, formatShort(lr))))),
    h("tbody", {}, ...rows));
}

function mapKey(range: Range): Child[] & Node[] {
  const steps = Array.from({ length: 24 }, (_, i) => `${rampColour(i / 23)} ${(i / 23) * 100}%`).join(", ");
  return [h("span", {}, "Loss ", formatNumber(range.low, 3)), h("span", { class: "ramp", style: `background: linear-gradient(to right, ${steps})` }), h("span", {}, `${formatNumber(range.high, 3)} and above`),
    h("span", { class: "key-cell hatched lost", "aria-hidden": "true" }, "×"), h("span", {}, "diverged"),
    h("span", { class: "key-cell hatched", style: `--stripe: ${rampInk(0.3)}; background-color: ${rampColour(0.3)}`, "aria-hidden": "true" }), h("span", {}, "some seeds diverged"),
    h("span", { class: "key-cell best", style: `background-color: ${rampColour(0.1)}`, "aria-hidden": "true" }), h("span", {}, "best")];
}

function takeaway(context: Context, maps: StabilityMap[]): string {
  const counts = maps.map((map): Count => {
    const cells = map.y.values.length * map.x.values.length;
    return { label: context.scheme(map.scheme).label, cells, lost: map.diverged.flat().filter((share) => share > 0).length };
  }).filter((count) => count.cells > 0).sort((a, b) => a.lost / a.cells - b.lost / b.cells);
  if (counts.length === 0) return "";
  const layers = maps[0]?.layers ?? NaN, where = Number.isFinite(layers) ? `At ${layers} layers` : "Here";
  const share = (count: Count): number => count.lost / count.cells, first = counts[0]!, last = counts.at(-1)!;
  const idle = [...new Set(maps.map((map) => map.scheme))].filter((name) => !context.trains(name)).map((name) => context.scheme(name).label);
  const care = idle.length > 0 ? ` Not diverging is not yet training: ${nameList(idle)} ${idle.length === 1 ? "does" : "do"} not train.` : "";
  if (last.lost === 0) return `${where} no seed diverged, in any cell of ${counts.length === 1 ? "the map" : "any map"}.${care}`;
  const sizes = new Set(counts.map((count) => count.cells)).size;  // counts can be compared where all maps are of one size
  const say = (count: Count): string => `${count.lost} of ${count.cells} cells${sizes > 1 && count.lost > 0 ? `, ${Math.round(100 * share(count))} %` : ""}`;
  const group = (of: Count): string => {
    const tied = counts.filter((count) => share(count) === share(of));
    return `${nameList(tied.map((count) => count.label))} (${of.lost === 0 ? "none" : new Set(tied.map(say)).size === 1 ? say(of) : `${Math.round(100 * share(of))} % of the cells`})`;
  };
  if (counts.length === 1) return `${where} a seed diverged in ${say(first)}.`;
  if (share(first) === share(last)) return `${where} a seed diverged in the same share of cells for every scheme: ${say(first)}.`;
  return `${where} a seed diverged in the fewest cells with ${group(first)}, in the most with ${group(last)}.${first.lost === 0 ? care : ""}`;
}

function numbers(context: Context, maps: StabilityMap[]): HTMLElement {
  const rows = maps.flatMap((map) => map.y.values.flatMap((y, i) => map.x.values.map((x, j) => ({ map, x, y, cell: map.loss[i]?.[j], share: shareOf(map, i, j) }))));
  return table("Stability maps, one row per cell", [
    { title: "Scheme", head: true, cell: (row) => context.scheme(row.map.scheme).label, sort: (row) => row.map.scheme },
    { title: "Layers", numeric: true, cell: (row) => exact(row.map.layers), sort: (row) => row.map.layers },
    { title: maps[0]?.x.name ?? "x", numeric: true, cell: (row) => exact(row.x, formatShort(row.x)), sort: (row) => row.x },
    { title: maps[0]?.y.name ?? "y", numeric: true, cell: (row) => exact(row.y, formatShort(row.y)), sort: (row) => row.y },
    { title: "Loss", numeric: true, cell: (row) => exact(row.cell?.mean ?? NaN), sort: (row) => row.cell?.mean ?? NaN },
    { title: "Low", numeric: true, cell: (row) => exact(row.cell?.low ?? NaN) },
    { title: "High", numeric: true, cell: (row) => exact(row.cell?.high ?? NaN) },
    { title: "Diverged", numeric: true, cell: (row) => exact(row.share, `${formatNumber(row.share * 100, 3)} %`), sort: (row) => row.share },
  ], rows);
}
