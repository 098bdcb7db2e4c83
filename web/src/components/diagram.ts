// The diagram of a scheme from results.json, which is not trusted: the drawing is read as XML and built anew from the
// few elements and attributes that such a drawing needs. Its own style is left out; style.css knows its classes and
// follows the theme of the page.
import { s } from "./dom";

const kElements = new Set(["svg", "g", "path", "line", "rect", "circle", "text", "title", "desc"]);
const kAttributes = new Set(["d", "x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "r", "rx", "ry", "width", "height", "viewBox", "transform",
  "text-anchor", "stroke-width", "stroke-dasharray", "fill-opacity", "stroke-opacity", "opacity"]);
const kClasses = new Set(["heading", "small", "left", "right", "name", "label", "line", "head", "ring", "divider", "plain", "norm", "branch", "scale", "learned"]);
const kPlain = /^[\w\s.,:;()+\-−%]*$/;
const kMostElements = 4000;
const kHeading = 44;  // height of the drawing's own heading

export function diagram(svg: string, name: string): SVGElement | null {
  const read = new DOMParser().parseFromString(svg, "image/svg+xml");
  const root = read.documentElement;
  if (root.localName !== "svg" || read.querySelector("parsererror")) return null;
  if (read.getElementsByTagName("*").length > kMostElements) return null;
  const copy = rebuild(root);
  if (!copy) return null;
  const described = [root.querySelector("title"), root.querySelector("desc")].map((part) => part?.textContent?.trim() ?? "").filter(Boolean).join(". ");
  crop(copy);
  copy.setAttribute("role", "img");
  copy.setAttribute("aria-label", described || `Diagram of ${name}`);
  copy.classList.add("diagram");
  return copy;
}

// The page has its own heading; the drawing's leaves with its space.
function crop(svg: SVGElement): void {
  const heading = svg.querySelector("text.heading"), [x, y, width, height] = (svg.getAttribute("viewBox") ?? "").split(/\s+/).map(Number);
  if (!heading || x === undefined || y === undefined || !width || !height || height <= 2 * kHeading) return;
  heading.remove();
  svg.setAttribute("viewBox", `${x} ${y + kHeading} ${width} ${height - kHeading}`);
  svg.setAttribute("height", String(height - kHeading));
}

function rebuild(from: Element): SVGElement | null {
  if (!kElements.has(from.localName)) return null;
  const copy = s(from.localName as "g");
  for (const { name, value } of from.attributes) {
    if (kAttributes.has(name) && kPlain.test(value)) copy.setAttribute(name, value);
    if (name === "class") copy.classList.add(...value.split(/\s+/).filter((one) => kClasses.has(one)));
  }
  for (const child of from.childNodes) {
    if (child instanceof Text) copy.append(child.data);
    else if (child instanceof Element) {
      const part = rebuild(child);
      if (part) copy.append(part);
    }
  }
  return copy;
}
