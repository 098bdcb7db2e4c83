// One look per scheme over the whole page: colour, dash and marker together, so that no one of them has to be seen.
import { symbol, symbolCircle, symbolCross, symbolDiamond, symbolSquare, symbolStar, symbolTriangle, symbolWye, type SymbolType } from "d3-shape";
import { s } from "./dom";

export interface Look {
  colour: string;
  dash: string;
  marker: SymbolType;
  turn: number;  // degrees
}

const kColours = 8;  // --scheme-0 ... in style.css
const kDashes = ["", "7 3", "2 2.5", "9 3 2 3", "5 2 1.5 2 1.5 2", "12 3"];
const kMarkers: [SymbolType, number][] = [
  [symbolCircle, 0], [symbolSquare, 0], [symbolTriangle, 0], [symbolDiamond, 0],
  [symbolCross, 45], [symbolTriangle, 180], [symbolStar, 0], [symbolWye, 0],
];

export function lookOf(index: number): Look {
  const lap = Math.floor(index / kColours);
  const [marker, turn] = kMarkers[(index + 3 * lap) % kMarkers.length]!;
  return { colour: `var(--scheme-${index % kColours})`, dash: kDashes[(index + lap) % kDashes.length]!, marker, turn };
}

export const markerPath = (look: Look, area: number): string => symbol(look.marker, area)() ?? "";

export function swatch(look: Look, line: "whole" | "dashed" = "whole"): SVGSVGElement {
  return s("svg", { class: "swatch", width: 30, height: 14, viewBox: "-15 -7 30 14", "aria-hidden": "true" },
    s("line", { x1: -14, x2: 14, y1: 0, y2: 0, stroke: look.colour, "stroke-width": 2, "stroke-dasharray": line === "dashed" ? look.dash : null }),
    s("path", { d: markerPath(look, 44), transform: `rotate(${look.turn})`, fill: look.colour, class: "halo" }));
}

// Dark to light, even in lightness and safe for colour-blind readers.
const kRamp = [[0, 34, 78], [18, 53, 112], [59, 73, 108], [87, 93, 109], [112, 113, 115], [138, 134, 120], [165, 156, 116], [195, 179, 105], [225, 204, 85], [254, 232, 56]] as const;

// share from 0 (dark) to 1 (light)
export function ramp(share: number): [number, number, number] {
  const at = Math.min(1, Math.max(0, share)) * (kRamp.length - 1), i = Math.min(kRamp.length - 2, Math.floor(at)), t = at - i;
  const a = kRamp[i]!, b = kRamp[i + 1]!;
  return [0, 1, 2].map((c) => Math.round(a[c]! + t * (b[c]! - a[c]!))) as [number, number, number];
}

export const rampColour = (share: number): string => `rgb(${ramp(share).join(" ")})`;

// Text on the ramp, black or white, whichever stands out more; the two are equal where the luminance is 0.179.
export function rampInk(share: number): string {
  const [red, green, blue] = ramp(share).map((part) => (part / 255 <= 0.04 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue! < 0.179 ? "#ffffff" : "#000000";
}
