// What intervals over seeds allow to say in a sentence: who leads, who is not told apart, who changes and who stays level.
import { nameList } from "./format";
import type { Estimate, Exponent } from "./results";

export interface Ranged {
  label: string;
  value: number;
  low: number;
  high: number;
}
export type Change = Ranged & { kind: "rising" | "falling" | "level" | "unclear" };
type Say = (value: number) => string;

export const kUntold = "not told apart by these seeds";
const kLevelFactor = Math.log(1.05);
const kLevelExponent = 0.02;  // 5 % over a tenfold range
// And known well enough to say so.
const kReachFactor = Math.log(2);
const kReachExponent = 0.1;

export const rangedOf = (label: string, of: Estimate): Ranged =>
  ({ label, value: of.mean, low: Number.isFinite(of.low) ? of.low : of.mean, high: Number.isFinite(of.high) ? of.high : of.mean });

const overlap = (a: Ranged, b: Ranged): boolean => a.high >= b.low && b.high >= a.low;

// The outermost, and in order those up to the last whose interval reaches its own: it cannot be said to beat that one.
// side: 1 the highest, -1 the lowest.
export function outermost<T extends Ranged>(items: T[], side: 1 | -1): T[] {
  const sorted = [...items].sort((a, b) => side * (b.value - a.value));
  return sorted.slice(0, sorted.findLastIndex((item) => overlap(item, sorted[0]!)) + 1);
}

const tieWords = (items: Ranged[]): string =>
  items.length === 1 ? "" : items.every((item) => overlap(item, items[0]!)) ? `, ${kUntold}` : `, ${kUntold.replace("told", "all told")}`;

function span(items: Ranged[], say: Say): string {
  const values = items.map((item) => item.value), first = say(Math.min(...values)), last = say(Math.max(...values));
  return first === last ? first : `${first} to ${last}`;
}

// "A (1.2)", or "A and B (1.1 to 1.2, not told apart by these seeds)".
export function groupWords(items: Ranged[], say: Say): string {
  return `${nameList(items.map((item) => item.label))} (${span(items, say)}${tieWords(items)})`;
}

// The two ends of a ranking, or null where even the ends are not told apart.
export function ends(items: Ranged[]): { lowest: Ranged[]; highest: Ranged[] } | null {
  const lowest = outermost(items, -1), highest = outermost(items, 1);
  return lowest.includes(highest[0]!) || highest.includes(lowest[0]!) ? null : { lowest, highest };
}

export function exponentChange(label: string, of: Exponent): Change {
  const low = Number.isFinite(of.low) ? of.low : of.value, high = Number.isFinite(of.high) ? of.high : of.value;
  const level = Math.abs(of.value) < kLevelExponent && Math.max(-low, high) < kReachExponent;
  return { label, value: of.value, low, high, kind: level ? "level" : low > 0 ? "rising" : high < 0 ? "falling" : "unclear" };
}

// From the first to the last of positive values, as the logarithm of their ratio; null where there is none.
export function factorChange(label: string, first: Estimate | undefined, last: Estimate | undefined): Change | null {
  if (!first || !last || !(first.mean > 0) || !(last.mean > 0)) return null;
  const a = rangedOf("", first), b = rangedOf("", last), value = Math.log(b.value / a.value);
  const below = (of: Ranged): number => (of.low > 0 ? Math.log(of.value / of.low) : Infinity), above = (of: Ranged): number => Math.log(of.high / of.value);
  const same = a.value === b.value && a.low === b.low && a.high === b.high;  // nothing happens in between, whatever the seeds
  const low = same ? 0 : value - Math.hypot(below(b), above(a)), high = same ? 0 : value + Math.hypot(above(b), below(a));
  const level = Math.abs(value) <= kLevelFactor && Math.max(-low, high) <= kReachFactor;
  return { label, value, low, high, kind: level ? "level" : low > 0 ? "rising" : high < 0 ? "falling" : "unclear" };
}

function sideWords(items: Change[], side: 1 | -1, unit: string, say: Say): string {
  const lead = outermost(items, side), rest = items.filter((item) => !lead.includes(item)).sort((a, b) => side * (b.value - a.value));
  const most = rest.length > 0 ? " most" : "", verb = side > 0 ? "rise" : "fall";
  const first = `${nameList(lead.map((item) => item.label))} ${verb}${lead.length === 1 ? "s" : ""}${most} (${unit}${span(lead, say)}${tieWords(lead)})`;
  return rest.length > 0 ? `${first}, then ${nameList(rest.map((item) => item.label))} (${span(rest, say)})` : first;
}

// One sentence; `where` opens it, as in "With more layers".
export function changeWords(changes: Change[], where: string, unit: string, say: Say): string {
  const of = (kind: Change["kind"]): Change[] => changes.filter((change) => change.kind === kind);
  const rising = of("rising"), falling = of("falling"), level = of("level"), unclear = of("unclear");
  const names = (items: Change[]): string => nameList(items.map((item) => item.label));
  if (changes.length === 0) return "";
  if (level.length === changes.length) return `${where} nothing changes by more than about 5 %.`;
  if (unclear.length === changes.length) return `${where} no change is told by these seeds.`;
  const said: string[] = [];
  if (rising.length > 0) said.push(sideWords(rising, 1, unit, say));
  if (falling.length > 0) said.push(sideWords(falling, -1, unit, say));
  if (level.length > 0) said.push(`${names(level)} ${level.length === 1 ? "stays" : "stay"} level`);
  if (unclear.length > 0) said.push(`for ${names(unclear)} no change is told by these seeds`);
  return `${where} ${said.join("; ")}.`;
}
