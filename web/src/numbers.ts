// The CSV of a figure as a table.
import { h } from "./components/dom";

const kMost = 2000;  // rows; more are in the file

export function fillTable(place: HTMLElement, csv: string, title: string): void {
  const [head = [], ...rows] = parse(csv);
  const table = h("table", {}, h("caption", {}, title), h("thead", {}, h("tr", {}, ...head.map((text) => h("th", { scope: "col" }, text)))),
    h("tbody", {}, ...rows.slice(0, kMost).map((row) => h("tr", {}, ...row.map((text, i) => (i === 0 ? h("th", { scope: "row" }, text) : h("td", { title: text }, short(text))))))));
  place.append(h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": `Numbers of ${title}` }, table));
  if (rows.length > kMost) place.append(h("p", {}, `${rows.length - kMost} more rows are in the CSV file.`));
}

const short = (text: string): string => (/^-?\d+\.\d{5,}/.test(text) ? String(Number(Number(text).toPrecision(5))) : text);

// Quoted cells may hold commas, quotes and line ends.
function parse(csv: string): string[][] {
  const rows: string[][] = [[]];
  for (const [, quoted, plain, end] of csv.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|$)/g)) {
    rows.at(-1)!.push(quoted === undefined ? plain ?? "" : quoted.replaceAll('""', '"'));
    if (end === "\r\n") rows.push([]);
  }
  return rows.filter((row) => row.length > 1 || row[0] !== "");
}
