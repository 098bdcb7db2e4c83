// A line chart: intervals as bands, theory as thin broken lines, divergences as crosses. Values are read with the
// pointer or the arrow keys. draw() may be called again and again, as a live page does.
import { area, line } from "d3-shape";
import { clip, formatShort } from "../data/format";
import { isZero, zeroLevel } from "../data/rounding";
import { ChartCursor } from "./chart_cursor";
import { h, s, uniqueId } from "./dom";
import { markerPath, type Look } from "./palette";
import { axisScale, type AxisScale } from "./scales";

export interface Series {
  key: string;
  scheme: string;
  label: string;
  look: Look;
  x: number[];
  y: number[];
  low?: number[];
  high?: number[];
  theory?: number[];
  divergedAt?: number;  // x of the cross
  crossAt?: "curve" | "top";
  note?: string;
}

export interface ChartSpec {
  label: string;
  xLabel: string;
  yLabel: string;
  xLog: boolean;
  yLog: boolean;
  height?: number;
  marks: "points" | "lines" | "faint";  // few points; few long lines; very many lines
  read: "column" | "nearest";           // what the pointer picks: all series at one x, or one point
  rules?: { y: number; label: string }[];
  diagonal?: string;                    // label of the line y = x
  xTicks?: number[];
  xName?: (x: number) => string;
  yCap?: number;                        // values above leave the chart
  yZero?: number;                       // what is not told from zero; on a logarithmic axis such lines are only named
}

export interface Frame {
  svg: SVGSVGElement;
  overlay: SVGGElement;
  x: AxisScale;
  y: AxisScale;
  left: number;
  right: number;
  top: number;
  bottom: number;
}

const kPrintWidth = 480;  // so that text keeps its size beside a legend on A4
const kMargin = { top: 26, right: 18, bottom: 44, left: 54 };

export class LineChart {
  readonly element = h("div", { class: "chart", tabindex: 0, role: "group" });
  private spec: ChartSpec | null = null;
  private series: Series[] = [];
  private width = 0;
  private readonly cursor = new ChartCursor(this.element);

  constructor() {
    new ResizeObserver(() => {
      const width = Math.round(this.element.clientWidth);
      if (width > 0 && width !== this.width && this.spec) requestAnimationFrame(() => this.render());
    }).observe(this.element);
    addEventListener("beforeprint", () => this.render(kPrintWidth));
    addEventListener("afterprint", () => this.render());
  }

  draw(spec: ChartSpec, series: Series[]): void {
    this.spec = spec;
    this.series = series;
    this.render();
  }

  private render(onPaper?: number): void {
    const spec = this.spec, series = this.series;
    if (!spec) return;
    this.width = Math.round(this.element.clientWidth) || 720;
    const width = onPaper ?? Math.max(280, this.width), height = spec.height ?? Math.round(Math.min(400, Math.max(260, width * 0.55)));
    const left = kMargin.left, right = width - kMargin.right, top = kMargin.top, bottom = height - kMargin.bottom;
    const cap = spec.yCap ?? Infinity;
    const level = spec.yLog ? zeroLevel(series.map((one) => one.y), spec.yZero) : 0;
    const zero = spec.yLog ? series.filter((one) => isZero(one.y, level)) : [], drawn = series.filter((one) => !zero.includes(one));
    const xs = series.flatMap((one) => one.x);
    const ys = drawn.flatMap((one) => [...one.y, ...(one.low ?? []).filter((v) => v > level), ...(one.high ?? []), ...(one.theory ?? [])]).filter((v) => v <= cap);
    for (const rule of spec.rules ?? []) ys.push(rule.y);
    const x = axisScale(xs, spec.xLog, [left, right], Math.max(3, Math.floor((right - left) / 75)), spec.marks === "points" ? 0.03 : 0, spec.xTicks);
    const y = axisScale(ys, spec.yLog, [bottom, top], 6, 0.04, undefined, 2);

    const frame = uniqueId("clip");
    const svg = s("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": spec.label },
      s("defs", {}, s("clipPath", { id: frame }, s("rect", { x: left, y: top - 4, width: right - left, height: bottom - top + 8 }))));
    svg.append(this.axes(spec, x, y, left, right, bottom));
    const plot = s("g", { "clip-path": `url(#${frame})` });
    const marks = s("g");
    svg.append(plot, marks);
    if (spec.diagonal) {
      const [low, high] = x.scale.domain() as [number, number];
      plot.append(s("line", { class: "rule", x1: x.scale(low), y1: y.scale(low), x2: x.scale(high), y2: y.scale(high) }));
    }
    for (const rule of spec.rules ?? []) {
      const at = y.scale(rule.y), below = at + 14 < bottom;
      plot.append(s("line", { class: "rule", x1: left, x2: right, y1: at, y2: at }));
      marks.append(s("text", { class: "rule-label", x: right - 4, y: at + (below && at > (top + bottom) / 2 ? 14 : -4), "text-anchor": "end" }, rule.label));
    }
    if (zero.length > 0) {
      const words = `zero within rounding: ${zero.map((one) => one.label).join(", ")}`;
      marks.append(s("text", { class: "zero-note", x: left, y: bottom + 37 }, clip(words, Math.floor((right - left - 90) / 6.3)), s("title", {}, words)));
    }
    for (const one of drawn) this.drawSeries(one, spec, x, y, plot, marks);
    const overlay = s("g", { class: "cursor" });
    svg.append(overlay);
    if (series.length === 0) svg.append(s("text", { class: "empty", x: (left + right) / 2, y: (top + bottom) / 2, "text-anchor": "middle" }, "No series to show"));
    this.element.setAttribute("aria-label", `${spec.label}. Arrow keys read values; the table below has them all.`);
    this.cursor.attach({ svg, overlay, x, y, left, right, top, bottom }, spec, series);
  }

  private axes(spec: ChartSpec, x: AxisScale, y: AxisScale, left: number, right: number, bottom: number): SVGGElement {
    const group = s("g", { class: "axes", "aria-hidden": "true" });
    for (const tick of y.ticks) {
      const at = y.scale(tick);
      group.append(s("line", { class: "grid", x1: left, x2: right, y1: at, y2: at }),
        s("text", { x: left - 8, y: at + 4, "text-anchor": "end" }, formatShort(tick)));
    }
    group.append(s("line", { class: "base", x1: left, x2: right, y1: bottom, y2: bottom }));
    for (const tick of x.ticks) {
      const at = x.scale(tick);
      group.append(s("line", { class: "base", x1: at, x2: at, y1: bottom, y2: bottom + 5 }),
        s("text", { x: at, y: bottom + 19, "text-anchor": "middle" }, spec.xName ? clip(spec.xName(tick), 18) : formatShort(tick)));
    }
    group.append(s("text", { class: "axis-label", x: 2, y: 13 }, clip([spec.yLabel, y.log ? (spec.yLabel ? "(log)" : "log scale") : ""].join(" ").trim(), 60)),
      s("text", { class: "axis-label", x: right, y: bottom + 37, "text-anchor": "end" }, clip(spec.xLabel, 40) + (x.log ? " (log)" : "")));
    return group;
  }

  private drawSeries(one: Series, spec: ChartSpec, x: AxisScale, y: AxisScale, plot: SVGGElement, marks: SVGGElement): void {
    const usable = (i: number): boolean => {
      const px = one.x[i]!, py = one.y[i]!;
      return Number.isFinite(px) && Number.isFinite(py) && (!x.log || px > 0) && (!y.log || py > 0);
    };
    const indices = one.x.map((_, i) => i);
    const px = (i: number): number => x.scale(one.x[i]!);
    const { colour, dash } = one.look;
    if (one.low && one.high) {
      const floor = y.scale.domain()[0]!;
      const band = area<number>().defined((i) => usable(i) && Number.isFinite(one.low![i]!) && Number.isFinite(one.high![i]!))
        .x(px).y0((i) => y.scale(y.log ? Math.max(one.low![i]!, floor) : one.low![i]!)).y1((i) => y.scale(one.high![i]!));
      plot.append(s("path", { class: "band", d: band(indices), fill: colour }));
    }
    if (one.theory) {
      const theory = one.theory;
      const drawn = line<number>().defined((i) => Number.isFinite(theory[i]!) && (!y.log || theory[i]! > 0)).x(px).y((i) => y.scale(theory[i]!));
      plot.append(s("path", { class: "theory", d: drawn(indices), stroke: colour }));
    }
    const path = line<number>().defined(usable).x(px).y((i) => y.scale(one.y[i]!))(indices);
    plot.append(s("path", { class: `series ${spec.marks}`, d: path, stroke: colour, "stroke-dasharray": spec.marks === "lines" ? dash : null, "data-key": one.key }));
    if (spec.marks === "points") {
      for (const i of indices) {
        if (!usable(i)) continue;
        marks.append(s("path", { class: "halo", d: markerPath(one.look, 46), fill: colour, transform: `translate(${px(i)},${y.scale(one.y[i]!)}) rotate(${one.look.turn})` }));
      }
    }
    if (one.divergedAt !== undefined) {
      const last = indices.findLast((i) => usable(i) && one.x[i]! <= one.divergedAt!), top = y.scale.range()[1]!;
      let height = last === undefined ? top : Math.max(top, y.scale(one.y[last]!));
      if (one.crossAt === "top") {
        const above = marks.querySelectorAll(`[data-at="${one.divergedAt}"]`).length;  // crosses at one x stand below each other
        height = top + 4 + 11 * above;
        if (last !== undefined) plot.append(s("path", { class: "to-divergence", stroke: colour, d: `M${px(last)} ${y.scale(one.y[last]!)}L${x.scale(one.divergedAt)} ${height}` }));
      }
      marks.append(s("path", { class: "diverged-mark", d: "M-4 -4 L4 4 M-4 4 L4 -4", stroke: colour, "data-at": one.divergedAt, transform: `translate(${x.scale(one.divergedAt)},${height})` },
        s("title", {}, `${one.label} diverged at ${spec.xLabel} ${formatShort(one.divergedAt)}`)));
    }
  }
}
