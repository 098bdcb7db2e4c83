// The answer first: ranks, verdicts in words, and the few numbers they rest on.
import { h, type Child } from "../components/dom";
import { swatch } from "../components/palette";
import { exact, table, type Column } from "../components/table";
import type { Context } from "../context";
import { formatInterval, formatNumber, formatShort } from "../data/format";
import type { DepthUse, Tuned, Verdict } from "../data/results";

type Tone = "good" | "care" | "bad" | "plain";

// Word and sign say it; colour only repeats it.
export function badge(verdict: string): HTMLElement {
  const word = verdict.toLowerCase();
  const [tone, sign]: [Tone, string] =
    /diverge|explod|fail|unstable|not train/.test(word) ? ["bad", "✕"]
    : /warmup|hollow|slow|risk|fragile|sensitive|vanish|care/.test(word) ? ["care", "▲"]
    : /stable|trains|good|best|recommended/.test(word) ? ["good", "✓"] : ["plain", "•"];
  return h("span", { class: `badge ${tone}` }, h("span", { "aria-hidden": "true" }, sign), verdict || "no verdict");
}

function withInterval(of: { mean: number; low: number; high: number; n: number }): Child {
  const interval = formatInterval(of);
  return h("span", {}, exact(of.mean), interval ? h("small", { class: "interval" }, ` ${interval}`) : null);
}

export function verdictSection(context: Context): HTMLElement | null {
  const { results } = context;
  const verdicts = [...results.verdicts].sort((a, b) => (Number.isNaN(a.rank) ? Infinity : a.rank) - (Number.isNaN(b.rank) ? Infinity : b.rank));
  const parts: Child[] = [];
  if (verdicts.length > 0) parts.push(verdictTable(context, verdicts));
  const { confidence, notTested } = results.advice;
  const care: Child[] = [confidence ? h("p", {}, confidence) : null];
  if (results.notes.length > 0) care.push(h("ul", {}, ...results.notes.map((note) => h("li", {}, note))));
  if (notTested.length > 0) care.push(h("p", {}, h("strong", {}, "Not tested: "), notTested.join("; "), "."));
  if (care.some(Boolean)) parts.push(h("aside", { class: "care-box", "aria-label": "How far this goes" }, h("h3", {}, "How far this goes"), ...care));
  if (parts.length === 0) return null;
  return h("div", {}, ...parts);
}

// On narrow screens the table is laid out as cards, and browsers then forget that it is a table.
function keepRoles(made: HTMLElement): void {
  const roles = { table: "table", thead: "rowgroup", tbody: "rowgroup", tr: "row", td: "cell", "thead th": "columnheader", "tbody th": "rowheader" };
  for (const [selector, role] of Object.entries(roles)) for (const element of made.querySelectorAll(selector)) element.setAttribute("role", role);
}

function verdictTable(context: Context, verdicts: Verdict[]): HTMLElement {
  const { results } = context;
  const deepest = <T extends { scheme: string; layers: number }>(items: T[]): Map<string, T> => {
    const found = new Map<string, T>();
    for (const item of items) if (!((found.get(item.scheme)?.layers ?? -1) > item.layers)) found.set(item.scheme, item);
    return found;
  };
  const tuned = deepest<Tuned>(results.tuned), depth = deepest<DepthUse>(results.depthUse);
  const layers = Math.max(...results.tuned.map((item) => item.layers), ...results.depthUse.map((item) => item.layers));
  const columns: Column<Verdict>[] = [
    { title: "Rank", cell: (v) => exact(v.rank), numeric: true },
    {
      title: "Scheme", head: true,
      cell: (v) => {
        const view = context.scheme(v.scheme);
        const has = results.schemes.some((scheme) => scheme.name === v.scheme);
        return h("span", { class: "scheme", title: view.title === view.label ? null : view.title }, swatch(view.look), has ? h("a", { href: `#scheme-${context.schemes.indexOf(view)}` }, view.label) : view.label);
      },
    },
    { title: "Verdict", cell: (v) => badge(v.verdict) },
    {
      title: "In words", below: true,
      cell: (v) => h("div", { class: "words" }, v.words, v.evidence.length > 0 ? h("details", {}, h("summary", {}, "Evidence"),
        h("ul", {}, ...v.evidence.map((item) => h("li", {}, item.text, item.value === "" ? null : ": ",
          Number.isNaN(item.number) ? item.value : exact(item.number))))) : null),
    },
  ];
  const some = (read: (scheme: string) => number): boolean => verdicts.some((v) => !Number.isNaN(read(v.scheme)));
  const number = (title: string, read: (scheme: string) => number, cell: (scheme: string) => Child): void => {
    if (some(read)) columns.push({ title, numeric: true, cell: (v) => cell(v.scheme) });
  };
  const tunedNumber = (title: string, read: (of: Tuned) => number, format: (value: number) => string): void => {
    const value = (name: string): number => (tuned.has(name) ? read(tuned.get(name)!) : NaN);
    number(title, value, (name) => (Number.isNaN(value(name)) ? "–" : exact(value(name), format(value(name)))));
  };
  const ofTraining = (read: (of: Tuned) => number) => (of: Tuned): number => (context.trains(of.scheme) ? read(of) : NaN);
  number("Loss", (name) => tuned.get(name)?.loss.mean ?? NaN, (name) => (tuned.has(name) ? withInterval(tuned.get(name)!.loss) : "–"));
  tunedNumber("Best lr", (of) => of.lr, formatShort);
  const rate = (value: number): string => (value === 0 ? "none" : formatShort(value));
  tunedNumber("Largest stable lr", ofTraining((of) => of.largestStableLr), rate);
  tunedNumber("Without warmup", ofTraining((of) => of.largestStableLrWithoutWarmup), rate);
  tunedNumber("Warmup needed", ofTraining((of) => of.needsWarmup), formatShort);
  tunedNumber("Sensitivity", ofTraining((of) => of.sensitivity.mean), (value) => formatNumber(value, 2));
  number("Effective depth", (name) => depth.get(name)?.effectiveDepth.mean ?? NaN, (name) => (depth.has(name) ? exact(depth.get(name)!.effectiveDepth.mean, formatNumber(depth.get(name)!.effectiveDepth.mean, 3)) : "–"));
  const caption = Number.isFinite(layers) ? `Numbers at ${layers} layers, each scheme at its own best learning rate and warmup. Brackets: 95 % interval over seeds.` : "";
  const made = table(caption, columns, verdicts, "Verdicts");
  made.classList.add("verdicts");
  keepRoles(made);
  return made;
}
