// The sentence above an analysis: what changes with depth and along one network, as far as the seeds tell, and how well
// theory did.
import type { Context } from "../context";
import { changeWords, exponentChange, factorChange } from "../data/compare";
import { formatExponent, formatNumber, formatShort, nameList } from "../data/format";
import type { Analysis, AnalysisSeries } from "../data/results";
import { isZero, leastOf, zeroLevel } from "../data/rounding";

// Exponents are powers of what the figure has across, or of the place within the deepest network.
export const alongSites = (analysis: Analysis): boolean => analysis.exponentOf !== analysis.x;

// "the sublayers of one network", or "the layers" where there is one place in each.
export function sitesWords(lines: AnalysisSeries[]): string {
  const deepest = lines.flatMap((line) => line.profiles).reduce((most, one) => (one.depth > most.depth ? one : most), { depth: -Infinity, sites: [] as string[] });
  return `the ${deepest.sites.length <= deepest.depth ? "layers" : "sublayers"} of one network`;
}

// Lines of which only rounding is left; their exponents mean nothing.
export function zeroLines(analysis: Analysis, lines: AnalysisSeries[]): Set<AnalysisSeries> {
  const means = lines.map((line) => line.y.map((y) => y.mean)), level = zeroLevel(means, leastOf(analysis.name));
  return new Set(lines.filter((_, i) => isZero(means[i]!, level)));
}

// One line about what is drawn by depth, one about places where exponents are of these, one about theory.
export function takeaway(context: Context, analysis: Analysis, lines: AnalysisSeries[]): string[] {
  const zero = zeroLines(analysis, lines), kept = lines.filter((line) => !zero.has(line));
  const label = (line: AnalysisSeries): string => context.scheme(line.scheme).label;
  const known = kept.filter((line) => Number.isFinite(line.exponent?.value ?? NaN));
  const exponents = known.map((line) => exponentChange(label(line), line.exponent!));
  const said: string[] = [];
  if (known.length === 0 || alongSites(analysis)) said.push(factorWords(analysis, kept, label));
  if (known.length > 0) said.push(changeWords(exponents, alongSites(analysis) ? `Along ${sitesWords(kept)}` : `With more ${analysis.x}`, "exponent ", formatExponent));
  said.push(theoryWords(known, label));
  return said.filter(Boolean);
}

function factorWords(analysis: Analysis, lines: AnalysisSeries[], label: (line: AnalysisSeries) => string): string {
  const long = lines.filter((line) => line.x.length > 1), from = long[0]?.x[0], to = long[0]?.x.at(-1);
  if (from === undefined || to === undefined) return "";
  const changes = long.filter((line) => line.x[0] === from && line.x.at(-1) === to).map((line) => factorChange(label(line), line.y[0], line.y.at(-1))).filter((change) => change !== null);
  return changeWords(changes, `From ${formatShort(from)} to ${formatShort(to)} ${analysis.x}`, "", (value) => `×${Math.abs(value) < Math.log(2) ? Math.exp(value).toFixed(2) : formatNumber(Math.exp(value), 2)}`);
}

function theoryWords(known: AnalysisSeries[], label: (line: AnalysisSeries) => string): string {
  const compared = known.filter((line) => Number.isFinite(line.theory?.exponent ?? NaN));
  if (compared.length === 0) return "";
  const gap = (line: AnalysisSeries): number => Math.abs(line.exponent!.value - line.theory!.exponent);
  if (compared.every((line) => line.exponent!.low === line.exponent!.high)) {
    const off = compared.reduce((worst, line) => (gap(line) > gap(worst) ? line : worst));
    return `Measured and predicted exponents differ by at most ${formatNumber(gap(off), 2)} (${label(off)}).`;
  }
  const off = compared.filter(({ exponent, theory }) => theory!.exponent < exponent!.low || theory!.exponent > exponent!.high).sort((a, b) => gap(b) - gap(a));
  if (off.length === 0) return "Every predicted exponent lies within the measured interval.";
  return `Predicted exponents lie within the measured intervals except for ${nameList(off.map((line) => `${label(line)} (predicted ${formatExponent(line.theory!.exponent)})`))}.`;
}
