// What stands in the bar: the data as files, the colours, printing.
import { h } from "./components/dom";
import { download } from "./components/download";
import { menu } from "./components/menu";
import { csv, sheets } from "./data/csv";
import { readResults } from "./data/read_results";
import { readTheme, setTheme, type Theme } from "./theme";

export function addTools(json: string, kind: string): void {
  setTheme(readTheme());
  const theme = h("select", { "aria-label": "Colours" }, ...(["auto", "light", "dark"] as Theme[]).map((one) => h("option", { value: one, selected: one === readTheme() }, one)));
  theme.addEventListener("change", () => setTheme(theme.value as Theme));
  document.getElementById("tools")?.append(
    menu("Data", "The data of this report", () => dataItems(json, kind)), theme,
    h("button", { type: "button", click: () => print() }, "Print"));
}

function dataItems(json: string, kind: string): { text: string; about: string; act: () => void }[] {
  const items = [{ text: kind === "run" ? "result.json" : kind === "comparison" ? "comparison.json" : "results.json", about: "everything on this page", act: () => download(`norma-${kind}.json`, "application/json", json) }];
  if (kind === "run" || kind === "comparison") return items;
  return items.concat(sheets(readResults(json)).map((sheet) => ({ text: `${sheet.name}.csv`, about: sheet.about, act: () => download(`norma-${kind}-${sheet.name}.csv`, "text/csv", csv(sheet)) })));
}
