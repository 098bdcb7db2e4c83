// A figure that was drawn by norma: what its points say when pointed at or reached by arrow keys, which scheme is in
// focus, its menu, and its numbers as a table.
import { h } from "./components/dom";
import { download } from "./components/download";
import { menu } from "./components/menu";
import { standalone, toPng } from "./export";
import { fillTable } from "./numbers";
import { hideTip, showTip } from "./tip";

type Spot = [x: number, y: number, scheme: number, text: string];
interface FigureData {
  title: string;
  caption: string;
  csv: string;
  pdf: string;
  wide: Spot[];
  narrow?: Spot[];
}

const kReach = 28;  // units around the pointer

// Every mark of the scheme, in every figure, steps forward.
let focused = -1;
function focusScheme(scheme: number): void {
  if (scheme === focused) return;
  for (const mark of document.querySelectorAll("[data-s].on")) mark.classList.remove("on");
  if (scheme >= 0) for (const mark of document.querySelectorAll(`[data-s="${scheme}"]`)) mark.classList.add("on");
  focused = scheme;
}

export class FigureView {
  private readonly data: FigureData;

  constructor(private readonly figure: HTMLElement, private readonly kind: string) {
    this.data = JSON.parse(figure.querySelector(".figure-data")!.textContent!) as FigureData;
    for (const drawing of figure.querySelectorAll<HTMLElement>(".drawing")) {
      this.watch(drawing, drawing.classList.contains("narrow") ? this.data.narrow ?? [] : this.data.wide);
    }
    const numbers = h("details", { class: "numbers" }, h("summary", {}, "Numbers"));
    numbers.addEventListener("toggle", () => { if (numbers.open && numbers.childElementCount === 1) fillTable(numbers, this.data.csv, this.data.title); });
    figure.append(h("div", { class: "figure-tools" }, numbers, menu("Save", this.data.title, () => this.items())));
  }

  private watch(drawing: HTMLElement, spots: Spot[]): void {
    const svg = drawing.querySelector("svg");
    if (!svg || spots.length === 0) return;
    let at = -1;
    const show = (index: number): void => {
      at = index;
      const spot = spots[index]!, box = svg.getBoundingClientRect(), scale = box.width / svg.viewBox.baseVal.width;
      showTip(spot[3], box.left + spot[0] * scale, box.top + spot[1] * scale);
      focusScheme(spot[2]);
    };
    const leave = (): void => { at = -1; hideTip(); focusScheme(-1); };
    drawing.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect(), scale = box.width / svg.viewBox.baseVal.width;
      const found = nearest(spots, (event.clientX - box.left) / scale, (event.clientY - box.top) / scale);
      if (found < 0) leave();
      else if (found !== at) show(found);
    });
    drawing.addEventListener("pointerleave", leave);
    drawing.tabIndex = 0;
    drawing.setAttribute("role", "group");
    drawing.setAttribute("aria-label", `${this.data.title}: arrow keys read the points`);
    drawing.addEventListener("keydown", (event) => {
      const step = event.key === "ArrowRight" || event.key === "ArrowDown" ? 1 : event.key === "ArrowLeft" || event.key === "ArrowUp" ? -1 : 0;
      if (event.key === "Escape") leave();
      if (step === 0) return;
      event.preventDefault();
      show((at + step + spots.length) % spots.length);
    });
    drawing.addEventListener("blur", leave);
  }

  private items(): { text: string; about: string; act: () => void }[] {
    const name = `norma-${this.kind}-${this.figure.id}`;
    const svg = (): string => standalone(this.figure.querySelector<SVGSVGElement>(".drawing svg")!, this.data.title, this.data.caption);
    const link = (): string => `${location.href.split("#")[0]}#${this.figure.id}`;
    return [
      { text: "SVG", about: "page width", act: () => download(`${name}.svg`, "image/svg+xml", svg()) },
      { text: "PNG", about: "page width, 3 pixels a unit", act: () => void toPng(svg()).then((png) => download(`${name}.png`, "image/png", png)) },
      { text: "PDF", about: "column width, 85 mm", act: () => download(`${name}.pdf`, "application/pdf", this.pdf()) },
      { text: "CSV", about: "the numbers behind it", act: () => download(`${name}.csv`, "text/csv", this.data.csv) },
      { text: "Link", about: "copy a link to this figure", act: () => void copy(link()) },
      { text: "Caption", about: "copy the caption", act: () => void copy(this.data.caption) },
    ];
  }

  // All figures share the beginning of their files.
  private pdf(): Uint8Array<ArrayBuffer> {
    const both = atob(document.getElementById("norma-pdf")!.textContent!) + atob(this.data.pdf);
    return Uint8Array.from(both, (letter) => letter.charCodeAt(0));
  }
}

function nearest(spots: Spot[], x: number, y: number): number {
  let best = -1, least = kReach * kReach;
  spots.forEach((spot, i) => {
    const distance = (spot[0] - x) ** 2 + (spot[1] - y) ** 2;
    if (distance < least) { least = distance; best = i; }
  });
  return best;
}

async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    showTip("Copied", innerWidth / 2, 60);
  } catch {
    showTip(text, innerWidth / 2, 60);  // where copying is not allowed it can be read
  }
}
