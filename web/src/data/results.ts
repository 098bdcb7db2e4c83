// results.json as the page uses it.

export interface Estimate {
  mean: number;
  low: number;
  high: number;
  n: number;
}
export interface Exponent {
  value: number;
  low: number;
  high: number;
}
export interface Scheme {
  name: string;
  title: string;
  source: string;
  formulas: [string, string][];
  diagramSvg: string;
  diagramText: string;
  normInstances: number;
  normParameters: number;
  parameters: number;
}
export interface Profile {
  depth: number;
  sites: string[];
  y: Estimate[];
  theory: number[];
}
// How the values behind one number are distributed over orders of magnitude.
export interface Histogram {
  depth: number;
  exact: boolean;
  edges: number[];
  share: Estimate[];
  unresolved: Estimate | null;  // what is only known to lie below
  unresolvedBelow: number;
}
export interface AnalysisSeries {
  scheme: string;
  x: number[];
  y: Estimate[];
  exponent: Exponent | null;
  theory: { y: number[]; exponent: number } | null;
  profiles: Profile[];
  histograms: Histogram[];
}
export interface Analysis {
  name: string;
  title: string;
  x: string;
  unit: string;
  log: boolean;
  about: string;
  source: string;
  exponentOf: string;  // what the exponent is a power of
  series: AnalysisSeries[];
}
export interface Curve {
  step: number[];
  loss: number[];
}
export interface Run {
  id: string;
  scheme: string;
  layers: number;
  width: number;
  lr: number;
  warmup: number;
  seed: number;
  stage: string; // of a study: map, race, final or long
  diverged: boolean;
  divergedAtStep: number;
  divergedBecause: string;
  firstBadWire: string;
  finalLoss: number;
  bestLoss: number;
  evaluationLoss: number;
  tokensPerSecond: number;
  curve: Curve;
  evaluations: Curve;
}
export interface Axis {
  name: string;
  values: number[];
}
export interface StabilityMap {
  scheme: string;
  layers: number;
  x: Axis;
  y: Axis;
  loss: Estimate[][];
  diverged: number[][];
}
export interface Tuned {
  scheme: string;
  layers: number;
  lr: number;
  warmup: number;
  loss: Estimate;
  sensitivity: Estimate;
  largestStableLr: number;
  largestStableLrWithoutWarmup: number;
  needsWarmup: number;
  stepsToTarget: Estimate;
  target: number;
}
export interface DepthUse {
  scheme: string;
  layers: number;
  effectiveDepth: Estimate;
  curve: { layersKept: number[]; loss: number[] };
  perLayer: Record<PerLayer, Estimate[]>;
  angularDistance: number[][];
}
export type PerLayer = "deletion" | "swap" | "width_equivalence" | "influence" | "lens_kl" | "lens_agreement" | "probe" | "path_length";

// Measures after 0, 1, ... layers, or by a length from 0; the others begin with layer 1.
export const firstIndex = (measure: PerLayer): number => (["lens_kl", "lens_agreement", "probe", "path_length"].includes(measure) ? 0 : 1);
export interface Verdict {
  scheme: string;
  rank: number;
  verdict: string;
  words: string;
  evidence: { text: string; value: string; number: number }[];
}
export interface Results {
  norma: string;
  kind: string;
  created: string;
  seconds: number;
  config: string;
  environment: [string, string][];
  command: string;
  task: { name: string; optimum: number; unigram: number; description: string };
  schemes: Scheme[];
  inspect: Analysis[];
  runs: Run[];
  maps: StabilityMap[];
  tuned: Tuned[];
  depthUse: DepthUse[];
  verdicts: Verdict[];
  advice: { words: string; ranking: string[]; confidence: string; notTested: string[] };
  notes: string[];
}
