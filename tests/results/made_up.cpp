#include "results/made_up.h"

#include <limits>

namespace norma::test {
namespace {

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
constexpr double kEndless = std::numeric_limits<double>::infinity();

const Estimate kLoss = {1.5, 1.25, 1.75, 3}, kNone = {kNotANumber, -kEndless, kEndless, 0};

void add_analyses(Results& results) {
  Series exact{.scheme = "pre", .x = {2, 4}, .y = {kLoss, kNone}, .exponent = Exponent{0.5, 0.4, 0.6}};
  exact.theory = TheoryCurve{.y = {0.25, kEndless}, .exponent = 0.125};
  exact.profiles = {{.depth = 2, .sites = {"layers.0.attn"}, .y = {kLoss}, .theory = {1e-30}}};
  exact.histograms = {{.depth = 2, .exact = true, .edges = {1, 10}, .share = {kLoss}},
                      {.depth = 4, .edges = {1, 10}, .share = {kLoss}, .unresolved = kLoss, .unresolved_below = 0.2}};
  results.analyses = {{.name = "gradient",
                       .title = "Gradient \xc3\xa9 \"quoted\"",
                       .unit = "nat",
                       .log = false,
                       .about = "</script>",
                       .source = "x",
                       .exponent_of = "sublayers",
                       .series = {exact, {.scheme = "post", .x = {}, .y = {}}}}};
  results.depth_use = {{.scheme = "pre",
                        .layers = 2,
                        .layer_names = {"down.layers.0", "up.layers.0"},
                        .loss = kLoss,
                        .effective_depth = kLoss,
                        .kept_loss = {3, 2, 1.5},
                        .deletion = {kLoss},
                        .swap = {kLoss},
                        .width_equivalence = {kLoss},
                        .influence = {kLoss},
                        .angular_distance = {{0, 0.5}, {0.5, 0}},
                        .lens_divergence = {1},
                        .lens_agreement = {0.5},
                        .probe = {kLoss},
                        .path_share = {0.25, 0.75}}};
}

std::vector<RunOutcome> made_up_runs() {
  RunOutcome stable{.id = "a", .axes = {{"train.lr", "0.001"}}, .scheme = "pre", .layers = 2, .width = 16, .lr = 1e-3};
  stable.warmup = 4;
  stable.seed = -1;
  stable.status = RunStatus::finished;
  stable.outcome = Outcome::stable_after_spikes;
  stable.final_loss = 1.5;
  stable.best_loss = stable.evaluation_loss.emplace(1.25);
  stable.tokens_per_second = 1e5;
  stable.curve = {{1, 2}, {3, kEndless}};
  stable.evaluations = {{2}, {1.25}};
  RunOutcome diverged = stable, stopped = stable, waiting = stable;
  diverged.status = RunStatus::diverged;
  diverged.outcome = Outcome::diverged;
  diverged.diverged_at_step = 17;
  diverged.diverged_because = "not finite";
  diverged.first_bad_wire = "layers.0.attn";
  diverged.final_loss = kNotANumber;
  diverged.evaluation_loss.reset();
  stopped.status = RunStatus::stopped;
  stopped.outcome = Outcome::stopped;
  stopped.stopped_at_step = 100;
  waiting.status = RunStatus::waiting;
  waiting.outcome.reset();
  return {stable, diverged, stopped, waiting};
}

void add_runs(Results& results) {
  results.runs = made_up_runs();
  const StabilityMap map{.scheme = "pre",
                         .layers = 2,
                         .rest = "width=16",
                         .y_name = "warmup",
                         .lr = {1e-3, 1e-2},
                         .y = {4},
                         .loss = {{kLoss, kNone}},
                         .diverged = {{0, 0.5}}};
  StabilityMap by_depth = map;
  by_depth.y_name = "layers";
  by_depth.layers = 0;
  by_depth.warmup = 4;
  results.maps = {map, by_depth};
  Tuned tuned;
  tuned.scheme = "pre";
  tuned.layers = 2;
  tuned.lr = 1e-3;
  tuned.warmup = 4;
  tuned.loss = kLoss;
  tuned.accuracy = kLoss;
  tuned.sensitivity = kLoss;
  tuned.with_warmup = {.lr = 1e-2, .low = 1e-3, .high = 1e-1, .beyond = true};
  tuned.needs_warmup = 4;
  tuned.diverged = 0.25;
  tuned.steps_to_target.steps = kLoss;
  tuned.target = 2;
  results.tuned = {tuned, Tuned()};
}

}  // namespace

Results made_up_results(ResultsKind kind) {
  Results results = new_results(kind);
  results.seconds = 12.5;
  results.command = "norma --json \"x y\"";
  results.config = "[train]\nlr = 1\n";
  results.environment = environment_now(std::vector<std::string>{"norma", "study"});
  results.task =
      TaskFacts{.name = "grammar", .description = "a grammar", .optimum = 1.25, .unigram = 2.5, .unit = "nats"};
  results.schemes = {{.name = "pre",
                      .title = "Pre-LN",
                      .source = "somebody",
                      .formulas = {{"sublayer", "x + f(norm(x))"}, {"final", "norm(x)"}},
                      .layers = 2,
                      .norm_instances = 5,
                      .norm_parameters = 160,
                      .parameters = 4000,
                      .by_role = {{"norm", 160}, {"attention", 2000}},
                      .diagram_svg = "<svg/>",
                      .diagram_text = "|",
                      .diagram_note = "no"}};
  results.notes = {"one", ""};
  if (kind != ResultsKind::sweep) add_analyses(results);
  if (kind != ResultsKind::inspect) add_runs(results);
  if (kind == ResultsKind::sweep) {
    results.ramps = {{.scheme = "pre", .layers = 2, .rest = "", .lr = kLoss, .beyond = true}};
    results.depth_efficiency = {{.scheme = "pre",
                                 .rest = "",
                                 .layers = {2, 4},
                                 .loss = {kLoss, kLoss},
                                 .gain_per_doubling = kLoss,
                                 .useful_layers = 2,
                                 .useful_share = 0.5},
                                DepthEfficiency()};
  }
  if (kind == ResultsKind::study) {
    results.extra_rates = {{"pre", {0.1, 0.3}, RateEdge::largest}};
    results.runs[0].stage = Stage::final;
    results.runs[0].steps = 120;
    results.tuned[0].steps = 120;
    results.course = Course{.budget = "180s", .tokens = 1e7, .rounds = {{Stage::longest, 120, 8, {1, -2}, "because"}}};
    results.comparisons = {
        {.a = "pre", .b = "post", .difference = kLoss, .p = 0.01, .adjusted_p = 0.02, .apart = true, .lasting = true}};
    results.comparisons[0].right = Estimate{0.02, 0.01, 0.03, 5};
    results.verdicts = {{"pre", 1, Judgement::needs_warmup, "words", {{"text", kNotANumber, 1, 2}}}};
    results.advice = {
        .words = "use pre", .confidence = "low", .choice = "pre", .ranking = {"pre"}, .not_tested = {"other data"}};
  }
  return results;
}

RunResult made_up_run() {
  MemberResult stable{.member = 0, .seed = 3, .lr = 1e-3, .warmup = 2, .final_loss = 1.5, .best_loss = 1.25};
  stable.evaluation_loss = stable.best_evaluation_loss = 1.25;
  stable.evaluation_records = 200;
  stable.scores = {{"accuracy", 0.5}, {"bleu", kNotANumber}};
  stable.unigram_entropy = 2.5;
  stable.tokens_per_second = 1e5;
  MemberResult diverged = stable, stopped = stable;
  diverged.member = 1;
  diverged.final_loss = kNotANumber;
  diverged.evaluation_loss.reset();
  diverged.outcome = Outcome::diverged;
  diverged.facts = {.diverged_at_step = 17, .diverged_because = "not finite", .first_bad_wire = "loss"};
  stopped.member = 2;
  stopped.outcome = Outcome::stopped;
  stopped.facts.stopped_at_step = 100;
  return {.norma = "0.1.0",
          .scheme = "pre",
          .task = "a grammar",
          .steps = 120,
          .parameters = 4000,
          .memory_bytes = 1 << 20,
          .optimum = 1.25,
          .seconds = 2.5,
          .tokens_per_second = 3e5,
          .gflops = 1.5,
          .cohort_members = 3,
          .members = {stable, diverged, stopped}};
}

}  // namespace norma::test
