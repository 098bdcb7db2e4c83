// A square map of numbers on a canvas, one pixel block per cell, with values on hover and by arrow keys.
import { formatNumber } from "../data/format";
import { h } from "./dom";
import { announce } from "./live";
import { ramp } from "./palette";

export interface HeatmapSpec {
  label: string;
  values: number[][];
  low: number;
  high: number;
  idle: string;  // said while nothing is read
  name: (row: number, column: number) => string;
}

const kPixels = 320;

export function heatmap(spec: HeatmapSpec): HTMLElement {
  const rows = spec.values.length, columns = Math.max(0, ...spec.values.map((row) => row.length));
  const canvas = h("canvas", { width: kPixels, height: kPixels, role: "img", "aria-label": spec.label });
  const read = h("p", { class: "reading" }, spec.idle), spot = h("div", { class: "spot", hidden: true });
  const stage = h("div", { class: "stage", tabindex: 0, role: "group", "aria-label": `${spec.label}. Arrow keys read values.` }, canvas, spot);
  paint(canvas, spec, rows, columns);
  let at: [number, number] | null = null;
  const show = (row: number, column: number, say: boolean): void => {
    const value = spec.values[row]?.[column];
    if (value === undefined) return;
    at = [row, column];
    const words = `${spec.name(row, column)}: ${formatNumber(value, 3)}`;
    read.textContent = words;
    spot.hidden = false;
    spot.style.cssText = `left:${(100 * column) / columns}%;top:${(100 * row) / rows}%;width:${100 / columns}%;height:${100 / rows}%`;
    if (say) announce(words);
  };
  const hide = (): void => {
    spot.hidden = true;
    read.textContent = spec.idle;
    at = null;
  };
  stage.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    show(Math.floor(((event.clientY - box.top) / box.height) * rows), Math.floor(((event.clientX - box.left) / box.width) * columns), false);
  });
  stage.addEventListener("pointerleave", hide);
  stage.addEventListener("blur", hide);
  stage.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (!move) return;
    event.preventDefault();
    const [row, column] = at ?? [0, 0];
    show(Math.min(rows - 1, Math.max(0, row + (at ? move[0]! : 0))), Math.min(columns - 1, Math.max(0, column + (at ? move[1]! : 0))), true);
  });
  return h("div", { class: "heatmap" }, stage, read);
}

function paint(canvas: HTMLCanvasElement, spec: HeatmapSpec, rows: number, columns: number): void {
  const pen = canvas.getContext("2d");
  if (!pen || rows === 0 || columns === 0) return;
  const left = (column: number): number => Math.round((kPixels * column) / columns), top = (row: number): number => Math.round((kPixels * row) / rows);
  spec.values.forEach((row, i) => row.forEach((value, j) => {
    if (!Number.isFinite(value)) return;
    pen.fillStyle = `rgb(${ramp((value - spec.low) / (spec.high - spec.low || 1)).join(" ")})`;
    pen.fillRect(left(j), top(i), left(j + 1) - left(j), top(i + 1) - top(i));
  }));
}
