// A folded list of things to do. It closes with Escape, a click elsewhere, and when something was done.
import { h } from "./dom";

export interface MenuItem {
  text: string;
  about?: string;
  act: () => void;
}

export function menu(label: string, name: string, items: () => MenuItem[]): HTMLElement {
  const list = h("ul"), summary = h("summary", { "aria-label": `${label}: ${name}` }, label), box = h("details", { class: "menu" }, summary, list);
  const close = (): void => void (box.open = false);
  box.addEventListener("toggle", () => {
    if (!box.open || list.childElementCount > 0) return;
    list.append(...items().map((item) => h("li", {}, h("button", { type: "button", click: () => { item.act(); close(); summary.focus(); } }, h("strong", {}, item.text), item.about ? h("span", {}, ` ${item.about}`) : null))));
  });
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    close();
    summary.focus();
  });
  document.addEventListener("click", (event) => {
    if (event.target instanceof Node && !box.contains(event.target)) close();
  });
  return box;
}
