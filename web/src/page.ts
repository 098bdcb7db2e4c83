// The report: head, contents, sections. A section that cannot be drawn says so and leaves the others alone.
import { choice } from "./components/controls";
import { append, h, type Child } from "./components/dom";
import { download } from "./components/download";
import { anchor } from "./components/figure";
import { liveRegion } from "./components/live";
import { Context } from "./context";
import { csv, sheets } from "./data/csv";
import { formatDate, formatDuration } from "./data/format";
import type { Results } from "./data/results";
import { depthFigures } from "./sections/depth";
import { inspectFigure } from "./sections/inspect";
import { mapsFigure } from "./sections/maps";
import { methodSection } from "./sections/method";
import { runsFigure, sensitivityFigure } from "./sections/runs";
import { schemesSection } from "./sections/schemes";
import { verdictSection } from "./sections/verdicts";
import { readTheme, setTheme, type Theme } from "./state";

interface Part {
  id: string;
  title: string;
  lead?: string;
  make: (() => HTMLElement | null)[];
}

const kTitles: Record<string, string> = { study: "Study", sweep: "Sweep", inspect: "Inspection" };

export function buildPage(results: Results, json: string): { page: HTMLElement[]; pending: (() => void)[] } {
  const context = new Context(results), pending: (() => void)[] = [];
  const parts = partsOf(context).filter((part) => part.make.length > 0);
  const main = h("main", { id: "content", tabindex: -1 }, header(context, json));
  const links: HTMLElement[] = [];
  for (const part of parts) {
    const section = h("section", { class: "part", id: part.id, "aria-labelledby": `${part.id}-heading`, tabindex: -1 },
      h("h2", { id: `${part.id}-heading` }, part.title, anchor(part.id, part.title)), part.lead ? h("p", { class: "lead" }, part.lead) : null);
    main.append(section);
    links.push(h("li", {}, h("a", { href: `#${part.id}` }, part.title)));
    part.make.forEach((make, i) => {
      const place = h("div");
      section.append(place);
      const fill = (): void => place.replaceWith(...attempt(make, part.title));
      if (part === parts[0] && i === 0) fill();
      else pending.push(fill);
    });
  }
  main.append(h("footer", {}, `Made by norma ${results.norma} from results.json, which is inside this file. No network was used to draw it.`));
  return {
    page: [h("a", { class: "skip", href: "#content" }, "Skip to the report"), h("nav", { class: "contents", "aria-label": "Contents" }, h("p", { class: "brand" }, "norma"), h("ul", {}, ...links)), main, liveRegion()],
    pending,
  };
}

function attempt(make: () => HTMLElement | null, title: string): HTMLElement[] {
  try {
    const made = make();
    return made ? [made] : [];
  } catch (error) {
    console.error(error);
    return [h("p", { class: "failed", role: "alert" }, `A part of “${title}” could not be drawn: ${error instanceof Error ? error.message : String(error)}`)];
  }
}

function partsOf(context: Context): Part[] {
  const { results } = context;
  return [
    { id: "verdicts", title: "Verdicts", make: results.verdicts.length + results.notes.length > 0 || results.advice.confidence ? [() => verdictSection(context)] : [] },
    {
      id: "inspect", title: results.runs.length > 0 ? "Before training" : "Measurements", make: results.inspect.map((analysis) => () => inspectFigure(context, analysis)),
      lead: "What each scheme does to gradients, activations and updates as the stack gets deeper, next to what theory predicts from its formula.",
    },
    { id: "stability", title: "Stability", make: results.maps.length > 0 ? [() => mapsFigure(context), () => sensitivityFigure(context)] : [] },
    { id: "training", title: "Training", make: results.runs.length > 0 ? [() => runsFigure(context)] : [] },
    { id: "depth", title: "Use of depth", make: depthFigures(context) },
    { id: "schemes", title: "Schemes", make: results.schemes.length > 0 ? [() => schemesSection(context)] : [] },
    { id: "method", title: "Method", make: [() => methodSection(context)] },
  ];
}

function header(context: Context, json: string): HTMLElement {
  const { results } = context;
  const count = (number: number, word: string): string => (number > 0 ? `${number} ${word}${number === 1 ? "" : "s"}` : "");
  const facts = [formatDate(results.created), count(context.schemes.length, "scheme"), count(results.runs.length, "run"), formatDuration(results.seconds), results.task.name ? `task ${results.task.name}` : ""].filter(Boolean);
  const title = kTitles[results.kind] ?? results.kind;
  document.title = `norma: ${title.toLowerCase()}, ${formatDate(results.created)}`;
  return h("header", { class: "head" },
    h("div", { class: "tools" }, downloads(context, json), choice<Theme>("Colours", [{ value: "auto", text: "auto" }, { value: "light", text: "light" }, { value: "dark", text: "dark" }], readTheme(), setTheme),
      h("button", { type: "button", class: "quiet", click: () => print() }, "Print")),
    h("h1", {}, title || "Report"), h("p", { class: "facts-line" }, facts.join(" · ")),
    results.task.description ? h("p", { class: "task" }, results.task.description) : null,
    results.advice.words ? h("p", { class: "advice" }, results.advice.words) : null);
}

function downloads(context: Context, json: string): HTMLElement {
  const name = `norma-${context.results.kind.replace(/[^a-z0-9-]/gi, "") || "results"}`;
  const item = (label: string, about: string, click: () => void): Child =>
    h("li", {}, h("button", { type: "button", click }, h("strong", {}, label), h("span", {}, about)));
  const list = h("ul", {}, item("results.json", "everything on this page", () => download(`${name}.json`, "application/json", json)),
    ...sheets(context.results).map((sheet) => item(`${sheet.name}.csv`, sheet.about, () => download(`${name}-${sheet.name}.csv`, "text/csv", csv(sheet)))));
  const menu = h("details", { class: "menu" }, h("summary", {}, "Download data"), list);
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    menu.open = false;
    menu.querySelector("summary")?.focus();
  });
  document.addEventListener("click", (event) => {
    if (event.target instanceof Node && !menu.contains(event.target)) menu.open = false;
  });
  return menu;
}

export function showFailure(root: Element, message: string): void {
  append(root, [h("main", { class: "failure" }, h("h1", {}, "This report cannot be shown"), h("p", { role: "alert" }, message))]);
}
