// Reads results.json. Every key may be absent and every text is untrusted: reading gives each value its type or a
// harmless default, so that nothing after it has to ask.
import type {
  Analysis, AnalysisSeries, Axis, Curve, DepthUse, Estimate, Exponent, Histogram, Profile, Results, Run, Scheme, StabilityMap, Tuned, Verdict,
} from "./results";
import type * as schema from "./results_schema";
import { anyText, dictionaries, dictionary, entries, isDictionary, list, number, numbers, text, texts, type Given, type Untrusted } from "./untrusted";

const flag = (value: Given<boolean> | undefined): boolean => (value as unknown) === true;

// A number stands for an estimate without an interval.
type Estimated = schema.Estimate | schema.NumberOrNull;
function estimate(value: Given<Estimated> | undefined): Estimate {
  if (!isDictionary(value)) {
    const mean = number(value as Given<schema.Number>);
    return { mean, low: mean, high: mean, n: Number.isNaN(mean) ? 0 : 1 };
  }
  const given = dictionary<schema.Estimate>(value);
  const mean = number(given.mean);
  const low = "low" in given ? number(given.low) : mean;
  const high = "high" in given ? number(given.high) : mean;
  return { mean, low, high, n: "n" in given ? number(given.n) : 1 };
}
const estimates = (value: Given<readonly Estimated[]> | undefined): Estimate[] => list(value).map(estimate);

function exponent(value: Given<schema.Exponent> | undefined): Exponent | null {
  const given = dictionary<schema.Exponent>(value), middle = number(given.value);
  if (Number.isNaN(middle)) return null;
  return { value: middle, low: "low" in given ? number(given.low) : middle, high: "high" in given ? number(given.high) : middle };
}

// Steps and losses of equal length, however many of each were given.
function curve(value: Given<schema.LossCurve> | undefined): Curve {
  const given = dictionary<schema.LossCurve>(value), step = numbers(given.step), loss = numbers(given.loss);
  const length = Math.min(step.length, loss.length);
  return { step: step.slice(0, length), loss: loss.slice(0, length) };
}

function scheme(value: Untrusted<schema.Scheme>): Scheme {
  return {
    name: text(value.name),
    title: text(value.title) || text(value.name),
    source: text(value.source),
    formulas: entries(value.formulas).map(([key, formula]) => [key, text(formula)]),
    diagramSvg: text(value.diagram_svg),
    diagramText: text(value.diagram_text),
    normInstances: number(value.norm_instances),
    normParameters: number(value.norm_parameters),
    parameters: number(value.parameters),
  };
}

function profile(value: Untrusted<schema.Profile>): Profile {
  return { depth: number(value.depth), sites: list(value.sites).map(text), y: estimates(value.y), theory: numbers(value.theory) };
}

function histogram(value: Untrusted<schema.Histogram>): Histogram {
  return {
    depth: number(value.depth),
    exact: text(value.method) === "exact",
    edges: numbers(value.edges),
    share: estimates(value.share),
    unresolved: isDictionary(value.unresolved) ? estimate(value.unresolved) : null,
    unresolvedBelow: number(value.unresolved_below),
  };
}

function analysisSeries(value: Untrusted<schema.Series>): AnalysisSeries {
  const theory = dictionary<schema.Theory>(value.theory);
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

function analysis(value: Untrusted<schema.Analysis>): Analysis {
  return {
    name: text(value.name),
    title: text(value.title) || text(value.name),
    x: text(value.x) || "x",
    unit: text(value.unit),
    log: flag(value.log),
    about: text(value.about),
    source: text(value.source),
    exponentOf: text(value.exponent_of) || text(value.x) || "x",
    series: dictionaries(value.series).map(analysisSeries),
  };
}

function run(value: Untrusted<schema.Run>): Run {
  return {
    id: text(value.id),
    scheme: text(value.scheme),
    layers: number(value.layers),
    width: number(value.width),
    lr: number(value.lr),
    warmup: number(value.warmup),
    seed: number(value.seed),
    stage: text(value.stage),
    diverged: flag(value.diverged),
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

function axis(value: Given<schema.Map["x"] | schema.Map["y"]> | undefined, fallback: string): Axis {
  const given = dictionary(value);
  return { name: text(given.name) || fallback, values: numbers(given.values) };
}

function stabilityMap(value: Untrusted<schema.Map>): StabilityMap {
  return {
    scheme: text(value.scheme),
    layers: number(value.layers),
    x: axis(value.x, "lr"),
    y: axis(value.y, "warmup"),
    loss: list(value.loss).map(estimates),
    diverged: list(value.diverged).map(numbers),
  };
}

function tuned(value: Untrusted<schema.Tuned>): Tuned {
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

function depthUse(value: Untrusted<schema.DepthUse>): DepthUse {
  const kept = dictionary<schema.DepthUse["curve"]>(value.curve), lens = dictionary<schema.DepthUse["lens"]>(value.lens);
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

function verdict(value: Untrusted<schema.Verdict>): Verdict {
  return {
    scheme: text(value.scheme),
    rank: number(value.rank),
    verdict: text(value.verdict),
    words: text(value.words),
    evidence: dictionaries(value.evidence).map((item) => ({
      text: text(item.text),
      value: anyText(item.value),
      number: number(item.value),
    })),
  };
}

function flatten(value: unknown, prefix: string, into: [string, string][]): [string, string][] {
  for (const [key, item] of Object.entries(isDictionary(value) ? value : {})) {
    const name = prefix === "" ? key : `${prefix}.${key}`;
    if (isDictionary(item)) flatten(item, name, into);
    else into.push([name, Array.isArray(item) ? item.map(anyText).join(", ") : anyText(item)]);
  }
  return into;
}

export function readResults(json: string): Results {
  const parsed: unknown = JSON.parse(json);
  if (!isDictionary(parsed)) throw new Error("the data of this report is not a JSON object");
  const given = dictionary<schema.Results>(parsed);
  const task = dictionary<schema.Task>(given.task), advice = dictionary<schema.Advice>(given.advice);
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
