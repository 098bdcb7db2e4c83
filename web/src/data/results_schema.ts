// Made by web/tools/results_types.mjs from docs/results.schema.json; `make web` writes it anew.

// One that JSON cannot say is named.
export type Number = number | "nan" | "inf" | "-inf";
export type NumberOrNull = Number | null;
export type FiniteOrNull = number | null;
export type Count = number;
export type CountOrNull = number | null;
export type TextOrNull = string | null;
// UTC, as 2026-11-15T12:00:00Z
export type Time = string;
// Mean over n seeds and the ends of its 95 % interval.
export type Estimate = {
  mean: Number;
  low: Number;
  high: Number;
  n: Count;
};
export type Estimates = readonly Estimate[];
export type EstimateOrNull = Estimate | null;
export type Numbers = readonly Number[];
export type Texts = readonly (string)[];
// A slope and the ends of its 95 % interval.
export type Exponent = {
  value: Number;
  low: Number;
  high: Number;
};
export type Environment = {
  norma: string;
  // of the build; empty outside a repository
  commit: string;
  compiler: string;
  cpu: string;
  instruction_set: string;
  cores: Count;
  memory_bytes: Count;
  kernel: string;
  time: Time;
  command_line: Texts;
};
export type Task = {
  name: string;
  description?: string;
  // the best reachable loss; of a sweep only where all runs share it
  optimum?: Number;
  // what guessing by frequency loses; of numbers, what their mean loses
  unigram?: Number;
  // of losses; left out: nats
  unit?: string;
};
// Counts are those of a model with `layers` layers.
export type Scheme = {
  name: string;
  title: string;
  source: string;
  formulas?: Record<string, string>;
  layers: Count;
  norm_instances: Count;
  norm_parameters: Count;
  parameters: Count;
  parameters_by_role?: Record<string, Count>;
  diagram_svg?: string;
  diagram_text?: string;
  // why there is no diagram
  diagram_note?: string;
};
// A quantity along the layers of one model.
export type Profile = {
  depth: Count;
  sites: Texts;
  y: Estimates;
  theory?: Numbers;
};
export type Histogram = {
  depth: Count;
  method: "exact" | "projections";
  // of the bins; the outer ones hold what lies beyond
  edges: Numbers;
  // one less than edges
  share: Estimates;
  // of projections: the share that is only known to lie below
  unresolved?: Estimate;
  unresolved_below?: Number;
};
export type Theory = {
  y: Numbers;
  // left out where a value is 0
  exponent?: Number;
};
export type Series = {
  scheme: string;
  x: Numbers;
  y: Estimates;
  exponent?: Exponent;
  theory?: Theory;
  profiles: readonly Profile[];
  histograms?: readonly Histogram[];
};
export type Analysis = {
  name: string;
  title: string;
  x: string;
  unit: string;
  log: boolean;
  about: string;
  source: string;
  series: readonly Series[];
  // what the exponent is a power of, where that is not x
  exponent_of?: string;
};
export type DepthUse = {
  scheme: string;
  layers: Count;
  // where the layers are of several stacks
  layer_names?: Texts;
  loss: Estimate;
  effective_depth: Estimate;
  curve: {
    layers_kept: Numbers;
    loss: Numbers;
  };
  deletion: Estimates;
  swap: Estimates;
  width_equivalence: Estimates;
  influence: Estimates;
  angular_distance: readonly Numbers[];
  lens: {
    kl: Numbers;
    agreement: Numbers;
  };
  probe?: Estimates;
  // share of the paths by length
  path_length?: Numbers;
};
export type LossCurve = {
  step: readonly Count[];
  loss: Numbers;
};
export type Run = {
  id: string;
  scheme: string;
  layers: Count;
  width: Count;
  lr: Number;
  warmup: Count;
  seed: number;
  status: "waiting" | "running" | "finished" | "diverged" | "stopped";
  // what tells this run from the others
  axes: Record<string, string>;
  diverged: boolean;
  diverged_at_step: CountOrNull;
  diverged_because: TextOrNull;
  first_bad_wire: TextOrNull;
  stopped_at_step: CountOrNull;
  final_loss: Number;
  best_loss: Number;
  evaluation_loss: NumberOrNull;
  tokens_per_second: Number;
  // an outcome with its step and reason; empty before the end
  verdict: string;
  curve: LossCurve;
  evaluations: LossCurve;
  // of a study
  stage?: Stage;
  // of a study
  steps?: Count;
};
// Rows follow y, cells of a row x.
export type Map = {
  scheme: string;
  // null where depth is an axis
  layers: CountOrNull;
  // what else varies in the sweep
  rest: string;
  x: {
    name: "lr";
    values: Numbers;
  };
  y: {
    name: "warmup" | "layers";
    values: Numbers;
  };
  loss: readonly Estimates[];
  // shares of the seeds
  diverged: readonly Numbers[];
  // where depth is an axis
  warmup?: Count;
};
export type StableRate = {
  lr: NumberOrNull;
  low: NumberOrNull;
  high: NumberOrNull;
  // the largest rate tried was stable
  beyond: boolean;
};
// The best setting of a scheme at one depth.
export type Tuned = {
  scheme: string;
  layers: Count;
  rest: string;
  // null where every setting has a diverged seed
  lr: NumberOrNull;
  warmup: Count;
  loss: Estimate;
  // the mean of sensitivity_estimate
  sensitivity: NumberOrNull;
  sensitivity_estimate: EstimateOrNull;
  largest_stable_lr: NumberOrNull;
  largest_stable_lr_without_warmup: NumberOrNull;
  stable_lr: StableRate;
  stable_lr_without_warmup: StableRate;
  needs_warmup: CountOrNull;
  // share of all runs
  diverged: Number;
  steps_to_target: Estimate;
  target: Number;
  // of the final of a study, which then says lr, warmup and loss
  steps?: Count;
  // held out, of the same runs as the loss
  accuracy?: Estimate;
};
// The rate of the last calm step of runs whose rate grows.
export type Ramp = {
  scheme: string;
  layers: Count;
  rest: string;
  lr: Estimate;
  beyond: boolean;
};
export type DepthEfficiency = {
  scheme: string;
  rest: string;
  layers: readonly Count[];
  loss: Estimates;
  gain_per_doubling: EstimateOrNull;
  useful_layers: Count;
  useful_share: Number;
};
// Rates of a scheme beyond the grid that all share.
export type ExtraRates = {
  scheme: string;
  lr: Numbers;
  // whether the best rate is still an end of those tried
  edge: "none" | "smallest" | "largest";
};
export type Stage = "map" | "race" | "final" | "long";
export type Round = {
  stage: Stage;
  steps: Count;
  runs: Count;
  seeds: readonly (number)[];
  why: string;
};
// What a study did, in order.
export type Course = {
  budget: string;
  // of all runs
  tokens: Number;
  rounds: readonly Round[];
};
// Two schemes of the final: how much more a loses than b.
export type Comparison = {
  a: string;
  b: string;
  difference: Estimate;
  p: Number;
  adjusted_p: Number;
  apart: boolean;
  lasting?: boolean;
  // of classifiers: how much larger a's share of right answers is
  right?: Estimate;
};
export type Evidence = {
  text: string;
  value: Number;
  low: Number;
  high: Number;
};
export type Verdict = {
  scheme: string;
  rank: Count;
  verdict: "stable" | "narrow" | "needs warmup" | "starts late" | "does not train" | "diverges" | "not enough training to tell" | "untested" | "leaks" | "below the optimum";
  words: string;
  evidence: readonly Evidence[];
};
export type Advice = {
  words: string;
  choice?: string;
  ranking: Texts;
  confidence: string;
  not_tested: Texts;
};
export type InspectResults = {
  norma: string;
  kind: "inspect";
  created: Time;
  seconds: Number;
  command: string;
  // TOML; initial models have only their command
  config?: string;
  environment?: Environment;
  task?: Task;
  schemes: readonly Scheme[];
  inspect: readonly Analysis[];
  depth_use?: readonly DepthUse[];
  notes: Texts;
};
export type SweepResults = {
  norma: string;
  kind: "sweep";
  created: Time;
  seconds: Number;
  // TOML that repeats the sweep
  config: string;
  command: string;
  environment?: Environment;
  task?: Task;
  schemes: readonly Scheme[];
  runs: readonly Run[];
  maps: readonly Map[];
  tuned: readonly Tuned[];
  ramps: readonly Ramp[];
  depth_efficiency: readonly DepthEfficiency[];
  notes: Texts;
};
// runs, maps, tuned, extra_rates, course and comparisons where something was trained
export type StudyResults = {
  norma: string;
  kind: "study";
  created: Time;
  seconds: Number;
  command: string;
  // TOML of the runs
  config?: string;
  environment?: Environment;
  task?: Task;
  schemes: readonly Scheme[];
  inspect: readonly Analysis[];
  depth_use?: readonly DepthUse[];
  notes: Texts;
  runs?: readonly Run[];
  maps?: readonly Map[];
  tuned?: readonly Tuned[];
  extra_rates?: readonly ExtraRates[];
  course?: Course;
  comparisons?: readonly Comparison[];
  verdicts: readonly Verdict[];
  advice: Advice;
};
export type MemberResult = {
  member: Count;
  seed: number;
  lr: FiniteOrNull;
  warmup: Count;
  final_loss: FiniteOrNull;
  best_loss: FiniteOrNull;
  evaluation_loss: FiniteOrNull;
  best_evaluation_loss: FiniteOrNull;
  // how many answers evaluation_accuracy (metrics) is of
  evaluation_records?: Number;
  scores: Record<string, FiniteOrNull>;
  unigram_entropy: FiniteOrNull;
  diverged: boolean;
  diverged_at_step: CountOrNull;
  diverged_because: TextOrNull;
  first_bad_wire: TextOrNull;
  // of runs that successive halving gave up
  stopped_at_step?: Count;
  spikes: Count;
  recovery_actions: Count;
  skipped_steps: Count;
  tokens_per_second: FiniteOrNull;
  // stable, stable after spikes, did not learn, diverged at step N: why, stopped early at step N, leaks, below the optimum
  verdict: string;
};
// result.json of a run; a number that is not finite is null
export type RunResult = {
  norma: string;
  scheme: string;
  task: string;
  steps: Count;
  parameters: Count;
  memory_bytes: Count;
  optimum: FiniteOrNull;
  seconds: FiniteOrNull;
  tokens_per_second: FiniteOrNull;
  gflops: FiniteOrNull;
  // of a run of a sweep: how many were trained together
  cohort_members?: Count;
  members: readonly MemberResult[];
};
// What norma inspect, sweep and study publish; docs/results.md says what it means. result.json of a run is #/$defs/run_result.
export type Results = InspectResults | SweepResults | StudyResults;
