// Small controls above a figure: a choice among few, a choice among many, a switch.
import { h } from "./dom";

// Buttons of which one is on.
export function choice<T extends string | number>(label: string, options: { value: T; text: string }[], start: T, change: (value: T) => void): HTMLElement {
  const buttons = options.map((option) => {
    const button = h("button", { type: "button", "aria-pressed": String(option.value === start), "data-value": String(option.value) }, option.text);
    button.addEventListener("click", () => {
      for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
      change(option.value);
    });
    return button;
  });
  return h("div", { class: "choice", role: "group", "aria-label": label }, h("span", { class: "choice-label", "aria-hidden": "true" }, label), h("span", { class: "segments" }, ...buttons));
}

export function select<T>(label: string, options: { value: T; text: string }[], change: (value: T) => void, start = 0): HTMLElement {
  const box = h("select", {}, ...options.map((option, i) => h("option", { value: i, selected: i === start }, option.text)));
  box.addEventListener("change", () => change(options[Number(box.value)]!.value));
  return h("label", { class: "select" }, h("span", {}, label), box);
}

export function toggle(label: string, start: boolean, change: (on: boolean) => void): HTMLElement {
  const button = h("button", { type: "button", class: "switch", "aria-pressed": String(start) }, label);
  button.addEventListener("click", () => {
    const on = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(on));
    change(on);
  });
  return button;
}
