// The page is whole without this program, which adds pointing, keys, menus, diagrams and the choice of colours.
import "./style.css";
import { FigureView } from "./figure";
import { showDiagrams } from "./diagrams";
import { revealTarget } from "./links";
import { addTools } from "./tools";

function start(): void {
  const data = document.getElementById("norma-results");
  const json = data?.textContent ?? "{}", kind = (data?.dataset.kind ?? "").replace(/[^a-z]/g, "") || "results";
  addTools(json, kind);
  for (const figure of document.querySelectorAll<HTMLElement>("main figure")) new FigureView(figure, kind);
  showDiagrams(json);
  revealTarget();
  addEventListener("hashchange", revealTarget);
  document.documentElement.dataset.ready = "true";
}

start();
