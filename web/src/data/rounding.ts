// Which lines of a figure are nothing but rounding. A whole line, never a point of one: a gradient that vanishes along
// the stack becomes as small and is a finding.

const kShare = 1e-6;            // of the figure's median
const kCosine = 2 ** -23;       // what single precision leaves of 1 - cosine
const kLeast: Record<string, number> = { influence: kCosine, angle: Math.acos(1 - kCosine) / Math.PI };

// What an analysis cannot tell from zero, whatever else is in its figure.
export const leastOf = (analysis: string): number => (Object.hasOwn(kLeast, analysis) ? kLeast[analysis]! : 0);

// Values up to here are zero when all of their line are.
export function zeroLevel(lines: number[][], least = 0): number {
  const sizes = lines.flat().map(Math.abs).filter((size) => size > 0 && size < Infinity).sort((a, b) => a - b);
  return Math.max(least, kShare * (sizes[Math.floor(sizes.length / 2)] ?? 0));
}

export const isZero = (line: number[], level: number): boolean => line.some(Number.isFinite) && line.every((value) => !(Math.abs(value) > level));
