// What is needed to repeat the run: command, configuration, task, machine.
import { h, type Child } from "../components/dom";
import { announce } from "../components/live";
import type { Context } from "../context";
import { formatDate, formatDuration, formatNumber } from "../data/format";

export function methodSection(context: Context): HTMLElement {
  const { results } = context, { task } = results;
  const facts: [string, Child][] = [["Program", `norma ${results.norma}`], ["Made", formatDate(results.created)]];
  if (Number.isFinite(results.seconds)) facts.push(["Took", formatDuration(results.seconds)]);
  if (task.name) facts.push(["Task", task.name]);
  if (task.description) facts.push(["About the task", task.description]);
  if (Number.isFinite(task.optimum)) facts.push(["Lowest possible loss", formatNumber(task.optimum)]);
  if (Number.isFinite(task.unigram)) facts.push(["Loss of token frequencies alone", formatNumber(task.unigram)]);
  return h("div", { class: "method" },
    h("dl", { class: "facts" }, ...facts.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
    results.command ? h("div", {}, h("h3", {}, "Command"), code(results.command, "command")) : null,
    results.config ? h("div", {}, h("h3", {}, "Configuration"), h("p", {}, "The resolved configuration; fed back unchanged it repeats the run."), code(results.config, "configuration")) : null,
    results.environment.length > 0 ? h("div", {}, h("h3", {}, "Machine"), h("dl", { class: "facts" }, ...results.environment.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]))) : null);
}

function code(text: string, name: string): HTMLElement {
  const copy = h("button", { type: "button", class: "quiet copy" }, "Copy");
  copy.addEventListener("click", () => {
    navigator.clipboard?.writeText(text).then(() => announce(`Copied the ${name}.`), () => announce("Copying is not allowed here; select the text instead."));
  });
  return h("div", { class: "code" }, copy, h("pre", { tabindex: 0, "aria-label": name }, text));
}
