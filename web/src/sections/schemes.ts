// The schemes: formula, diagram drawn from it, and what it costs.
import { diagram } from "../components/diagram";
import { h, type Child } from "../components/dom";
import { swatch } from "../components/palette";
import { exact } from "../components/table";
import type { Context } from "../context";
import { formatCount } from "../data/format";
import type { Scheme } from "../data/results";

export function schemesSection(context: Context): HTMLElement {
  return h("div", { class: "schemes" }, ...context.results.schemes.map((scheme) => card(context, scheme)));
}

function card(context: Context, scheme: Scheme): HTMLElement {
  const view = context.scheme(scheme.name), drawn = scheme.diagramSvg ? diagram(scheme.diagramSvg, scheme.title) : null;
  const count = (name: string, value: number): Child[] => (Number.isFinite(value) ? [h("div", {}, h("dt", {}, name), h("dd", {}, exact(value, formatCount(value))))] : []);
  const costs = [...count("Norms", scheme.normInstances), ...count("Norm parameters", scheme.normParameters), ...count("Parameters", scheme.parameters)];
  return h("article", { class: "scheme-card", id: `scheme-${context.schemes.indexOf(view)}`, tabindex: -1 },
    h("h3", {}, swatch(view.look), scheme.title),
    scheme.source ? h("p", { class: "source" }, scheme.source) : null,
    scheme.formulas.length > 0 ? h("dl", { class: "formulas" }, ...scheme.formulas.flatMap(([key, formula]) => [h("dt", {}, key), h("dd", {}, h("code", {}, formula))])) : null,
    drawn ? h("div", { class: "diagram-frame" }, drawn) : null,
    scheme.diagramText ? (drawn ? h("details", {}, h("summary", {}, "Diagram as text"), h("pre", {}, scheme.diagramText)) : h("pre", {}, scheme.diagramText)) : null,
    costs.length > 0 ? h("dl", { class: "costs" }, ...costs) : null);
}
