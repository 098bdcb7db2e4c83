// What every section needs: the results and one name and look per scheme.
import { lookOf, type Look } from "./components/palette";
import { clip } from "./data/format";
import type { Results } from "./data/results";

export interface SchemeView {
  name: string;
  title: string;  // in full
  label: string;  // short, for charts and tables
  look: Look;
}

// "Peri-LN (Sandwich-LN)" is short without its end, the formula "x + f(x)/sqrt(l)" wrong.
const kAside = /(?<=[\p{L}\p{N}])\s+\([^()]*\)$/u;

export class Context {
  readonly schemes: SchemeView[] = [];
  private readonly byName = new Map<string, SchemeView>();

  constructor(readonly results: Results) {
    for (const scheme of results.schemes) this.add(scheme.name, scheme.title);
    const mentioned = [results.verdicts, results.tuned, results.maps, results.runs, results.depthUse, ...results.inspect.map((one) => one.series)];
    for (const items of mentioned) for (const item of items) this.add(item.scheme, item.scheme);
  }

  scheme(name: string): SchemeView {
    return this.byName.get(name) ?? this.add(name, name);
  }

  // In the order of the page.
  sorted<T extends { scheme: string }>(items: T[]): T[] {
    return [...items].sort((a, b) => this.schemes.indexOf(this.scheme(a.scheme)) - this.schemes.indexOf(this.scheme(b.scheme)));
  }

  // A scheme that does not train has no rate, warmup or sensitivity that could be compared with others'.
  trains(name: string): boolean {
    return !this.results.verdicts.some((verdict) => verdict.scheme === name && /not train/i.test(verdict.verdict));
  }

  private add(name: string, title: string): SchemeView {
    const known = this.byName.get(name);
    if (known) return known;
    const view = { name, title, label: clip(title.replace(kAside, ""), 40), look: lookOf(this.schemes.length) };
    this.schemes.push(view);
    this.byName.set(name, view);
    return view;
  }
}

export const depthsOf = (items: { layers: number }[]): number[] =>
  [...new Set(items.map((item) => item.layers))].filter(Number.isFinite).sort((a, b) => a - b);
