// The frame around every chart and map: title with its own link, one sentence of what the data says, controls, the
// drawing, how it was measured, and the same numbers as a table.
import { linkTo } from "../state";
import { h, type Child } from "./dom";

export interface FigureParts {
  id: string;
  title: string;
  takeaway?: Child;
  controls?: Child[];
  body: Child[];
  about?: Child;
  data?: () => HTMLElement;  // made when the reader opens it
}

export function anchor(id: string, title: string): HTMLElement {
  const link = h("a", { class: "anchor", href: `#${id}`, "aria-label": `Link to ${title}` }, "#");
  link.addEventListener("click", (event) => {
    event.preventDefault();
    history.pushState(null, "", linkTo(id));
    document.getElementById(id)?.scrollIntoView();
    navigator.clipboard?.writeText(location.href).catch(() => undefined);
  });
  return link;
}

export function figure(parts: FigureParts): HTMLElement {
  const heading = `${parts.id}-title`;
  return h("section", { class: "figure", id: parts.id, "aria-labelledby": heading, tabindex: -1 },
    h("h3", { id: heading }, parts.title, anchor(parts.id, parts.title)),
    parts.takeaway ? h("p", { class: "takeaway" }, parts.takeaway) : null,
    parts.controls && parts.controls.length > 0 ? h("div", { class: "controls" }, ...parts.controls) : null,
    ...parts.body,
    parts.about ? h("p", { class: "about" }, parts.about) : null,
    parts.data ? lazyDetails("Show the numbers", parts.data) : null);
}

export function lazyDetails(summary: string, make: () => HTMLElement): HTMLDetailsElement {
  const details = h("details", { class: "data" }, h("summary", {}, summary));
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) details.append(make());
  });
  return details;
}
