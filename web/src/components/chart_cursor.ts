// Reading values off a chart: follows the pointer and the arrow keys, shows a card and says the same to screen readers.
import { Delaunay } from "d3-delaunay";
import { formatNumber, formatShort } from "../data/format";
import type { ChartSpec, Frame, Series } from "./chart";
import { h, s } from "./dom";
import { announce } from "./live";
import { swatch } from "./palette";

interface Point {
  series: Series;
  index: number;
}

export class ChartCursor {
  private readonly card = h("div", { class: "card", hidden: true });
  private frame: Frame | null = null;
  private spec: ChartSpec | null = null;
  private series: Series[] = [];
  private columns: number[] | null = null;
  private points: { all: Point[]; near: Delaunay<Point> } | null = null;
  private column = -1;
  private at: Point | null = null;

  constructor(private readonly host: HTMLElement) {
    host.addEventListener("pointermove", (event) => this.onPointer(event));
    host.addEventListener("pointerleave", () => this.hide());
    host.addEventListener("blur", () => this.hide());
    host.addEventListener("keydown", (event) => this.onKey(event));
  }

  attach(frame: Frame, spec: ChartSpec, series: Series[]): void {
    this.frame = frame;
    this.spec = spec;
    this.series = series;
    this.columns = null;
    this.points = null;
    this.column = -1;
    this.at = null;
    this.card.hidden = true;
    this.host.replaceChildren(frame.svg, this.card);
  }

  private hide(): void {
    this.card.hidden = true;
    this.frame?.overlay.replaceChildren();
    this.column = -1;
    this.at = null;
  }

  private xs(): number[] {
    this.columns ??= [...new Set(this.series.flatMap((one) => one.x))].filter((x) => Number.isFinite(this.frame!.x.scale(x))).sort((a, b) => a - b);
    return this.columns;
  }

  private near(): { all: Point[]; near: Delaunay<Point> } {
    if (this.points) return this.points;
    const { x, y } = this.frame!, all: Point[] = [];
    for (const one of this.series) {
      one.x.forEach((value, index) => {
        if (Number.isFinite(x.scale(value)) && Number.isFinite(y.scale(one.y[index]!))) all.push({ series: one, index });
      });
    }
    this.points = { all, near: Delaunay.from(all, (p) => x.scale(p.series.x[p.index]!), (p) => y.scale(p.series.y[p.index]!)) };
    return this.points;
  }

  private onPointer(event: PointerEvent): void {
    const frame = this.frame;
    if (!frame || this.series.length === 0) return;
    const box = frame.svg.getBoundingClientRect(), stretch = frame.svg.viewBox.baseVal.width / box.width;
    const px = (event.clientX - box.left) * stretch, py = (event.clientY - box.top) * stretch;
    if (px < frame.left - 12 || px > frame.right + 12 || py < 0) return this.hide();
    if (this.spec!.read === "column") {
      const xs = this.xs();
      let best = 0;
      xs.forEach((x, i) => {
        if (Math.abs(frame.x.scale(x) - px) < Math.abs(frame.x.scale(xs[best]!) - px)) best = i;
      });
      this.showColumn(best, false);
    } else {
      const { all, near } = this.near();
      const found = all[near.find(px, py)];
      if (found) this.showPoint(found, false);
    }
  }

  private onKey(event: KeyboardEvent): void {
    if (this.series.length === 0) return;
    if (event.key === "Escape") return this.hide();
    if (!["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"].includes(event.key)) return;
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key] ?? 0;
    const clamp = (value: number, last: number): number => Math.min(last, Math.max(0, value));
    if (this.spec!.read === "column") {
      if (step === 0) return;
      event.preventDefault();
      const last = this.xs().length - 1;
      if (last >= 0) this.showColumn(this.column < 0 ? (step > 0 ? 0 : last) : clamp(this.column + step, last), true);
      return;
    }
    event.preventDefault();
    const current = this.at ?? { series: this.series[0]!, index: 0 };
    if (step !== 0) return this.showPoint({ series: current.series, index: clamp(current.index + step, current.series.x.length - 1) }, true);
    const row = clamp(this.series.indexOf(current.series) + (event.key === "ArrowDown" ? 1 : -1), this.series.length - 1), series = this.series[row]!;
    this.showPoint({ series, index: clamp(current.index, series.x.length - 1) }, true);
  }

  private name(x: number): string {
    return this.spec!.xName ? this.spec!.xName(x) : formatShort(x);
  }

  private showColumn(column: number, say: boolean): void {
    const frame = this.frame!, x = this.xs()[column];
    if (x === undefined) return;
    this.column = column;
    const rows = this.series.map((series) => ({ series, index: series.x.indexOf(x) })).filter((row) => row.index >= 0)
      .sort((a, b) => b.series.y[b.index]! - a.series.y[a.index]!);
    const px = frame.x.scale(x);
    frame.overlay.replaceChildren(s("line", { x1: px, x2: px, y1: frame.top, y2: frame.bottom }),
      ...rows.filter((row) => frame.y.scale(row.series.y[row.index]!) <= frame.bottom)
        .map((row) => s("circle", { cx: px, cy: frame.y.scale(row.series.y[row.index]!), r: 4.5, fill: row.series.look.colour })));
    const title = `${this.spec!.xLabel} ${this.name(x)}`;
    const withTheory = rows.some((row) => row.series.theory);
    this.fill(px, h("strong", {}, title), h("table", {},
      withTheory ? h("thead", {}, h("tr", {}, h("th"), h("th", {}, "measured"), h("th", {}, "theory"))) : null,
      h("tbody", {}, ...rows.map(({ series, index }) => h("tr", {}, h("th", {}, swatch(series.look), series.label),
        h("td", {}, formatNumber(series.y[index]!)),
        withTheory ? h("td", {}, series.theory ? formatNumber(series.theory[index] ?? NaN) : "") : null)))));
    if (say) announce(`${title}: ${rows.map(({ series, index }) => `${series.label} ${formatNumber(series.y[index]!)}`).join(", ")}`);
  }

  private showPoint(point: Point, say: boolean): void {
    const frame = this.frame!, { series, index } = point;
    const x = series.x[index]!, y = series.y[index]!, px = frame.x.scale(x), py = frame.y.scale(y);
    this.at = point;
    const path = [...frame.svg.querySelectorAll<SVGPathElement>("path.series")].find((one) => one.dataset.key === series.key);
    const marks: SVGElement[] = [];
    if (path) marks.push(s("path", { class: "picked", d: path.getAttribute("d"), stroke: series.look.colour }));
    if (Number.isFinite(py)) marks.push(s("circle", { cx: px, cy: Math.max(frame.top, py), r: 4.5, fill: series.look.colour }));
    frame.overlay.replaceChildren(...marks);
    const value = `${this.spec!.xLabel} ${this.name(x)}: ${formatNumber(y)}`;
    this.fill(px, h("strong", {}, swatch(series.look, "dashed"), series.label), h("div", {}, value), series.note ? h("div", { class: "note" }, series.note) : null);
    if (say) announce(`${series.label}, ${value}${series.note ? `, ${series.note}` : ""}`);
  }

  private fill(px: number, ...content: (Node | null)[]): void {
    this.card.replaceChildren(...content.filter((node) => node !== null));
    this.card.hidden = false;
    const shrink = this.frame!.svg.getBoundingClientRect().width / this.frame!.svg.viewBox.baseVal.width;
    const x = px * shrink, room = this.host.clientWidth, width = this.card.offsetWidth;
    const beside = x + 16 + width <= room ? x + 16 : x - 16 - width;
    this.card.style.left = `${Math.max(0, Math.min(beside, room - width))}px`;
  }
}
