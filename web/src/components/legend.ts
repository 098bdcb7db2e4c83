// The legend is the control: a row per scheme with its look, its key numbers, and a switch that hides it everywhere.
import { anyHidden, isHidden, onVisibilityChange, showAll, showOnly, toggleScheme } from "../state";
import { h, type Child } from "./dom";
import { swatch, type Look } from "./palette";

export interface LegendRow {
  scheme: string;
  label: string;
  look: Look;
  values?: Child[];
}

export function legend(heads: string[], rows: LegendRow[], foot?: Child, line: "whole" | "dashed" = "whole"): HTMLElement {
  const names = rows.map((row) => row.scheme);
  const buttons = rows.map((row) => h("button", {
    type: "button", class: "toggle", "data-scheme": row.scheme, title: "Show or hide in every figure; with Shift: this one alone",
    click: (event: MouseEvent) => (event.shiftKey ? showOnly(row.scheme, names) : toggleScheme(row.scheme)),
  }, swatch(row.look, line), h("span", {}, row.label)));
  const all = h("button", { type: "button", class: "quiet", click: showAll }, "Show all");
  const body = rows.map((row, i) => h("tr", {}, h("th", { scope: "row" }, buttons[i]!), ...(row.values ?? []).map((value) => h("td", { class: "number" }, value))));
  const update = (): void => {
    rows.forEach((row, i) => {
      const off = isHidden(row.scheme);
      buttons[i]!.setAttribute("aria-pressed", String(!off));
      body[i]!.classList.toggle("off", off);
    });
    all.hidden = !anyHidden();
  };
  const element = h("div", { class: "legend" },
    h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Scheme"), ...heads.map((head) => h("th", { scope: "col", class: "number" }, head)))), h("tbody", {}, ...body)),
    all, foot ? h("p", { class: "legend-foot" }, foot) : null);
  onVisibilityChange(element, update);
  update();
  return element;
}
