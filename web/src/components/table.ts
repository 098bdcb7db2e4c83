// A table of data with a caption, row and column heads, exact values behind the rounded ones, and sorting on request.
import { h, type Child } from "./dom";
import { formatNumber } from "../data/format";

export interface Column<Row> {
  title: string;
  cell: (row: Row) => Child;
  sort?: (row: Row) => number | string;  // given: the head is a button
  head?: boolean;                        // the row's name
  numeric?: boolean;
  below?: boolean;                       // in a row of its own under the others, without a head; at most one
}

// The rounded number for the eye, the exact one for machines and on hover.
export function exact(value: number, shown = formatNumber(value)): HTMLDataElement {
  return h("data", { value: String(value), title: Number.isFinite(value) ? String(value) : null }, shown);
}

export function table<Row>(caption: Child, columns: Column<Row>[], rows: Row[], label?: string): HTMLElement {
  const body = h("tbody"), beside = columns.filter((column) => !column.below), below = columns.find((column) => column.below);
  let order = rows, sorted = -1, descending = false;
  const fill = (): void => {
    body.replaceChildren(...order.flatMap((row) => [h("tr", {}, ...beside.map((column) =>
      column.head
        ? h("th", { scope: "row", "data-title": column.title }, column.cell(row))
        : h("td", { class: column.numeric ? "number" : null, "data-title": column.title }, column.cell(row)))),
    ...(below ? [h("tr", { class: "below" }, h("td", { colspan: beside.length }, below.cell(row)))] : [])]));
  };
  const heads = beside.map((column, i) => {
    if (!column.sort) return h("th", { scope: "col", class: column.numeric ? "number" : null }, column.title);
    const button = h("button", { type: "button", class: "sort" }, column.title, h("span", { "aria-hidden": "true", class: "arrow" }));
    const head = h("th", { scope: "col", class: column.numeric ? "number" : null }, button);
    button.addEventListener("click", () => {
      descending = sorted === i && !descending;
      sorted = i;
      const key = column.sort!, sign = descending ? -1 : 1;
      order = [...rows].sort((a, b) => sign * compare(key(a), key(b)));
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      fill();
    });
    return head;
  });
  fill();
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label ?? (typeof caption === "string" ? caption : "table") },
    h("table", {}, caption ? h("caption", {}, caption) : null, h("thead", {}, h("tr", {}, ...heads)), body));
}

// What is not a number goes last.
function compare(a: number | string, b: number | string): number {
  if (typeof a === "number" && typeof b === "number") {
    if (Number.isNaN(a) || Number.isNaN(b)) return Number(Number.isNaN(a)) - Number(Number.isNaN(b));
    return a - b;
  }
  return String(a).localeCompare(String(b));
}
