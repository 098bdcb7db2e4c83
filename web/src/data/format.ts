// Numbers as readers see them: four significant digits, a true minus sign, powers of ten where zeros would pile up.
import type { Estimate } from "./results";

const withMinus = (written: string): string => written.replace("-", "−");

export function formatNumber(value: number, digits = 4): string {
  if (Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e7) return size < 1e4 ? withMinus(String(value)) : withMinus(value.toLocaleString("en-US"));
  if (size >= 1e5 || size < 1e-3) {
    const [mantissa = "", power = ""] = value.toExponential(digits - 2).split("e");
    return `${withMinus(mantissa.includes(".") ? mantissa.replace(/\.?0+$/, "") : mantissa)}e${power.replace("+", "")}`;
  }
  return withMinus(value.toPrecision(digits));
}

// For axes and settings: the shortest way to write the number.
export function formatShort(value: number): string {
  if (!Number.isFinite(value) || value === 0) return formatNumber(value);
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-2) {
    const [mantissa = "", power = ""] = value.toExponential(2).split("e");
    return `${withMinus(mantissa.replace(/\.?0+$/, ""))}e${power.replace("+", "")}`;
  }
  return withMinus(String(Number(value.toPrecision(4))));
}

export function formatExponent(value: number): string {
  return Number.isFinite(value) ? withMinus(value.toFixed(2)).replace("−0.00", "0.00") : formatNumber(value);
}

// With the decimals of the mean as it is shown, so that a tie is seen as one.
export function formatInterval(of: Estimate, shown = formatNumber(of.mean)): string {
  if (!(of.n > 1) || !Number.isFinite(of.low) || !Number.isFinite(of.high)) return "";
  const decimals = shown.split(".")[1]?.length ?? 0, power = shown.includes("e");
  const end = (value: number): string => (power ? formatNumber(value) : withMinus(value.toFixed(Number.isInteger(of.mean) ? 3 : decimals)));
  return `[${end(of.low)}, ${end(of.high)}]`;
}

export function formatCount(value: number): string {
  if (!Number.isFinite(value)) return formatNumber(value);
  if (value >= 1e6) return `${(value / 1e6).toPrecision(3)} M`;
  if (value >= 1e4) return `${(value / 1e3).toPrecision(3)} k`;
  return String(value);
}

export function formatDuration(seconds: number): string {
  if (!Number.isFinite(seconds)) return "";
  if (seconds < 90) return `${seconds.toPrecision(3)} s`;
  if (seconds < 5400) return `${(seconds / 60).toPrecision(3)} min`;
  return `${(seconds / 3600).toPrecision(3)} h`;
}

export function formatDate(iso: string): string {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return iso;
  return `${at.toISOString().slice(0, 10)} ${at.toISOString().slice(11, 16)} UTC`;
}

export const clip = (words: string, most: number): string => (words.length > most ? `${words.slice(0, most - 1)}…` : words);

// "a, b and c"
export function sentenceList(items: string[]): string {
  return items.length < 2 ? items.join("") : `${items.slice(0, -1).join(", ")} and ${items.at(-1)}`;
}

// The same, with "and 3 others" in place of a long tail.
export const nameList = (names: string[], most = 5): string => sentenceList(names.length > most ? [...names.slice(0, most - 1), `${names.length - most + 1} others`] : names);
