// What is pointed at, in words; also for screen readers.
import { h } from "./components/dom";

const tip = h("div", { id: "tip", role: "status", "aria-live": "polite", hidden: true });
document.body.append(tip);

export function showTip(words: string, x: number, y: number): void {
  tip.textContent = words;
  tip.hidden = false;
  const width = tip.offsetWidth, height = tip.offsetHeight;
  tip.style.left = `${Math.max(8, Math.min(innerWidth - width - 8, x - width / 2))}px`;
  tip.style.top = `${y - height - 12 < 4 ? y + 14 : y - height - 12}px`;
}

export const hideTip = (): void => void (tip.hidden = true);
