// A value of results.json before anybody has looked at it. It may be anything; `Given<T>` remembers what the schema says
// of it, so that the compiler refuses a reader of keys that there are not, or of other types than they have.

declare const of: unique symbol;
export interface Given<T> {
  readonly [of]?: T;  // of types alone: there is no such key
}

type Keys<T> = T extends unknown ? keyof T : never;
type Value<T, K> = T extends unknown ? (K extends keyof T ? Exclude<T[K], undefined> : never) : never;
export type Untrusted<T> = { readonly [K in Keys<T>]?: Given<Value<T, K>> };

export const isDictionary = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export const dictionary = <T>(value: Given<T> | undefined): Untrusted<NonNullable<T>> =>
  (isDictionary(value) ? value : {}) as Untrusted<NonNullable<T>>;
export const entries = <T>(value: Given<Record<string, T>> | undefined): [string, Given<T>][] =>
  Object.entries(isDictionary(value) ? value : {}) as [string, Given<T>][];
export const list = <T>(value: Given<readonly T[]> | undefined): Given<T>[] => (Array.isArray(value) ? value : []);
export const dictionaries = <T>(value: Given<readonly T[]> | undefined): Untrusted<T>[] =>
  list(value).filter(isDictionary) as Untrusted<T>[];

type Numeric = number | "nan" | "inf" | "-inf" | null;

// NaN stands for "not given"; "inf" and "-inf" keep their meaning.
export function number(value: Given<Numeric> | undefined): number {
  const given: unknown = value;
  if (typeof given === "number") return given;
  if (given === "inf") return Infinity;
  if (given === "-inf") return -Infinity;
  return NaN;
}

export function anyText(value: unknown): string {
  if (typeof value === "string") return value;
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
export const text = (value: Given<string | null> | undefined): string => anyText(value);

export const numbers = (value: Given<readonly Numeric[]> | undefined): number[] => list(value).map(number);
export const texts = (value: Given<readonly string[]> | undefined): string[] => list(value).map(text).filter((item) => item !== "");
