// One place that speaks to screen readers.
import { h } from "./dom";

const region = h("div", { id: "live", class: "hidden-text", "aria-live": "polite", role: "status" });

export const liveRegion = (): HTMLElement => region;
export const announce = (words: string): void => void (region.textContent = words);
