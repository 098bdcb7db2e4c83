// results.json as the page uses it. Every key may be absent and every text is untrusted: reading gives each value its
// type or a harmless default, so that nothing after it has to ask.

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

type Dictionary = Record<string, unknown>;

const isDictionary = (value: unknown): value is Dictionary =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const dictionary = (value: unknown): Dictionary => (isDictionary(value) ? value : {});
const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const dictionaries = (value: unknown): Dictionary[] => list(value).filter(isDictionary);

// NaN stands for "not given"; "inf" and "-inf" keep their meaning.
export function number(value: unknown): number {
  if (typeof value === "number") return value;
  if (value === "inf") return Infinity;
  if (value === "-inf") return -Infinity;
  return NaN;
}

export function text(value: unknown): string {
  if (typeof value === "string") return value;
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

const numbers = (value: unknown): number[] => list(value).map(number);
const texts = (value: unknown): string[] => list(value).map(text).filter((item) => item !== "");

export function estimate(value: unknown): Estimate {
  if (!isDictionary(value)) {
    const mean = number(value);
    return { mean, low: mean, high: mean, n: Number.isNaN(mean) ? 0 : 1 };
  }
  const mean = number(value.mean);
  const low = "low" in value ? number(value.low) : mean;
  const high = "high" in value ? number(value.high) : mean;
  return { mean, low, high, n: "n" in value ? number(value.n) : 1 };
}
const estimates = (value: unknown): Estimate[] => list(value).map(estimate);

function exponent(value: unknown): Exponent | null {
  if (typeof value === "number") return { value, low: value, high: value };
  if (!isDictionary(value) || Number.isNaN(number(value.value))) return null;
  const middle = number(value.value);
  return { value: middle, low: "low" in value ? number(value.low) : middle, high: "high" in value ? number(value.high) : middle };
}

// Steps and losses of equal length, however many of each were given.
function curve(value: unknown): Curve {
  const step = numbers(dictionary(value).step), loss = numbers(dictionary(value).loss);
  const length = Math.min(step.length, loss.length);
  return { step: step.slice(0, length), loss: loss.slice(0, length) };
}

function scheme(value: Dictionary): Scheme {
  return {
    name: text(value.name),
    title: text(value.title) || text(value.name),
    source: text(value.source),
    formulas: Object.entries(dictionary(value.formulas)).map(([key, formula]) => [key, text(formula)]),
    diagramSvg: text(value.diagram_svg),
    diagramText: text(value.diagram_text),
    normInstances: number(value.norm_instances),
    normParameters: number(value.norm_parameters),
    parameters: number(value.parameters),
  };
}

function profile(value: Dictionary): Profile {
  return { depth: number(value.depth), sites: list(value.sites).map(text), y: estimates(value.y), theory: numbers(value.theory) };
}

function histogram(value: Dictionary): Histogram {
  return {
    depth: number(value.depth),
    exact: value.method === "exact",
    edges: numbers(value.edges),
    share: estimates(value.share),
    unresolved: isDictionary(value.unresolved) ? estimate(value.unresolved) : null,
    unresolvedBelow: number(value.unresolved_below),
  };
}

function analysisSeries(value: Dictionary): AnalysisSeries {
  const theory = dictionary(value.theory);
  return {
    scheme: text(value.scheme),
    x: numbers(value.x),
    y: estimates(value.y),
    exponent: exponent(value.exponent),
    theory: isDictionary(value.theory) ? { y: numbers(theory.y), exponent: number(theory.exponent) } : null,
    profiles: dictionaries(value.profiles).map(profile),
    histograms: dictionaries(value.histograms).map(histogram),
  };
}

function analysis(value: Dictionary): Analysis {
  return {
    name: text(value.name),
    title: text(value.title) || text(value.name),
    x: text(value.x) || "x",
    unit: text(value.unit),
    log: value.log === true,
    about: text(value.about),
    source: text(value.source),
    exponentOf: text(value.exponent_of) || text(value.x) || "x",
    series: dictionaries(value.series).map(analysisSeries),
  };
}

function run(value: Dictionary): Run {
  return {
    id: text(value.id),
    scheme: text(value.scheme),
    layers: number(value.layers),
    width: number(value.width),
    lr: number(value.lr),
    warmup: number(value.warmup),
    seed: number(value.seed),
    stage: text(value.stage),
    diverged: value.diverged === true,
    divergedAtStep: number(value.diverged_at_step),
    divergedBecause: text(value.diverged_because),
    firstBadWire: text(value.first_bad_wire),
    finalLoss: number(value.final_loss),
    bestLoss: number(value.best_loss),
    evaluationLoss: number(value.evaluation_loss),
    tokensPerSecond: number(value.tokens_per_second),
    curve: curve(value.curve),
    evaluations: curve(value.evaluations),
  };
}

function axis(value: unknown, fallback: string): Axis {
  const given = dictionary(value);
  return { name: text(given.name) || fallback, values: numbers(given.values) };
}

function stabilityMap(value: Dictionary): StabilityMap {
  return {
    scheme: text(value.scheme),
    layers: number(value.layers),
    x: axis(value.x, "lr"),
    y: axis(value.y, "warmup"),
    loss: list(value.loss).map(estimates),
    diverged: list(value.diverged).map(numbers),
  };
}

function tuned(value: Dictionary): Tuned {
  return {
    scheme: text(value.scheme),
    layers: number(value.layers),
    lr: number(value.lr),
    warmup: number(value.warmup),
    loss: estimate(value.loss),
    sensitivity: { ...estimate(isDictionary(value.sensitivity_estimate) ? value.sensitivity_estimate : value.sensitivity), mean: number(value.sensitivity) },
    largestStableLr: number(value.largest_stable_lr),
    largestStableLrWithoutWarmup: number(value.largest_stable_lr_without_warmup),
    needsWarmup: number(value.needs_warmup),
    stepsToTarget: estimate(value.steps_to_target),
    target: number(value.target),
  };
}

function depthUse(value: Dictionary): DepthUse {
  const kept = dictionary(value.curve), lens = dictionary(value.lens);
  return {
    scheme: text(value.scheme),
    layers: number(value.layers),
    effectiveDepth: estimate(value.effective_depth),
    curve: { layersKept: numbers(kept.layers_kept), loss: numbers(kept.loss) },
    perLayer: {
      deletion: estimates(value.deletion),
      swap: estimates(value.swap),
      width_equivalence: estimates(value.width_equivalence),
      influence: estimates(value.influence),
      lens_kl: estimates(lens.kl),
      lens_agreement: estimates(lens.agreement),
      probe: estimates(value.probe),
      path_length: estimates(value.path_length),
    },
    angularDistance: list(value.angular_distance).map(numbers),
  };
}

function verdict(value: Dictionary): Verdict {
  return {
    scheme: text(value.scheme),
    rank: number(value.rank),
    verdict: text(value.verdict),
    words: text(value.words),
    evidence: dictionaries(value.evidence).map((item) => ({
      text: text(item.text),
      value: text(item.value),
      number: number(item.value),
    })),
  };
}

function flatten(value: unknown, prefix: string, into: [string, string][]): [string, string][] {
  for (const [key, item] of Object.entries(dictionary(value))) {
    const name = prefix === "" ? key : `${prefix}.${key}`;
    if (isDictionary(item)) flatten(item, name, into);
    else into.push([name, Array.isArray(item) ? item.map(text).join(", ") : text(item)]);
  }
  return into;
}

export function readResults(json: string): Results {
  const given: unknown = JSON.parse(json);
  if (!isDictionary(given)) throw new Error("the data of this report is not a JSON object");
  const task = dictionary(given.task), advice = dictionary(given.advice);
  return {
    norma: text(given.norma),
    kind: text(given.kind),
    created: text(given.created),
    seconds: number(given.seconds),
    config: text(given.config),
    environment: flatten(given.environment, "", []),
    command: text(given.command),
    task: {
      name: text(task.name),
      optimum: number(task.optimum),
      unigram: number(task.unigram),
      description: text(task.description),
    },
    schemes: dictionaries(given.schemes).map(scheme),
    inspect: dictionaries(given.inspect).map(analysis),
    runs: dictionaries(given.runs).map(run),
    maps: dictionaries(given.maps).map(stabilityMap),
    tuned: dictionaries(given.tuned).map(tuned),
    depthUse: dictionaries(given.depth_use).map(depthUse),
    verdicts: dictionaries(given.verdicts).map(verdict),
    advice: {
      words: text(advice.words),
      ranking: texts(advice.ranking),
      confidence: text(advice.confidence),
      notTested: texts(advice.not_tested),
    },
    notes: texts(given.notes),
  };
}
