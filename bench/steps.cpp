// Whole training steps of a decoder: forward, backward, AdamW; planning time; arena size; members side by side.
#include "bench/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <limits>

#include "bench/prepare.h"
#include "bench/split.h"
#include "norma/backends/device.h"
#include "norma/lab/study.h"
#include "norma/train/config.h"
#include "norma/train/step.h"

namespace norma::bench {
namespace {

Timing time_step(const ModelConfig& config, Session::Options options, double seconds) {
  const TrainingStep step = build_training_step(config, {});
  const auto session = make_session(step.plan, options);
  prepare(*session, step, config);
  return time_repeated([&] { session->run(Watching::no); }, seconds);
}

void bench_step(Report& report, const std::string& name, const ModelConfig& config, const Options& options) {
  if (!options.wants("step/" + name)) return;
  const Timing timing = time_step(config, {.members = 1, .threads = options.threads}, 2 * options.seconds);
  report.add_rate("step/" + name, model_flops(config) * 1e-9, timing, "GFLOP/s", "sgemm_gflops");
  report.add_rate("step/" + name + "/tokens", static_cast<double>(config.batch * config.time), timing, "tokens/s", "");
}

// What watching every layer costs: as many steps as there are between two records, with and without probes, in turns;
// and a step that is watched.
void bench_probes(Report& report, const std::string& name, const ModelConfig& config, const Options& options) {
  const std::string watched_step = "probes of a watched step/" + name;
  if (!options.wants("probes/" + name) && !options.wants(watched_step)) return;
  const TrainingStep watched = build_training_step(config, {.probes = true});
  const TrainingStep plain = build_training_step(config, {.probes = false});
  const auto with = make_session(watched.plan, {.members = 1, .threads = options.threads});
  const auto without = make_session(plain.plan, {.members = 1, .threads = options.threads});
  prepare(*with, watched, config);
  prepare(*without, plain, config);
  const std::int64_t steps = TrainConfig{}.log_every;
  const auto some = [&](Session& session) {
    for (std::int64_t step = 0; step < steps; ++step) session.run(step == 0 ? Watching::yes : Watching::no);
  };
  double ratio = time_ratio([&] { some(*with); }, [&] { some(*without); }, 4 * options.seconds);
  report.add_value("probes/" + name, 100 * (ratio - 1), "%", "step without probes", 1 / ratio);
  ratio = time_ratio([&] { with->run(); }, [&] { without->run(); }, 4 * options.seconds);
  report.add_value(watched_step, 100 * (ratio - 1), "%", "step without probes", 1 / ratio);
}

// DeepNorm is Post-LN with a scale in front of every norm: what that costs, in kernels and in time, both in turns.
void bench_scales(Report& report, const std::string& name, const ModelConfig& post, const Options& options) {
  const std::string entry = "scales/deepnorm over post/" + name;
  if (!options.wants(entry)) return;
  ModelConfig deepnorm = post;
  deepnorm.scheme = "deepnorm";
  const TrainingStep scaled = build_training_step(deepnorm, {}), plain = build_training_step(post, {});
  const auto with = make_session(scaled.plan, {.members = 1, .threads = options.threads});
  const auto without = make_session(plain.plan, {.members = 1, .threads = options.threads});
  prepare(*with, scaled, deepnorm);
  prepare(*without, plain, post);
  const auto kernels = [](const TrainingStep& step) { return static_cast<double>(step.plan->steps().size()); };
  report.add_value(entry + "/kernels", kernels(scaled) - kernels(plain), "more");
  const double ratio =
      time_ratio([&] { with->run(Watching::no); }, [&] { without->run(Watching::no); }, 4 * options.seconds);
  report.add_value(entry + "/time", 100 * (ratio - 1), "%", "Post-LN step", 1 / ratio);
}

// Two members on two threads against one on one thread, in steps of a member per second.
void bench_members(Report& report, const ModelConfig& config, const Options& options) {
  const Timing one = time_step(config, {.members = 1, .threads = 1}, options.seconds);
  const Timing two = time_step(config, {.members = 2, .threads = 2}, options.seconds);
  report.add_value("members/2 on 2 threads over 1 on 1", 2 * one.best / two.best, "x", "ideal of 2",
                   one.best / two.best);
}

// How long planning takes, and how much memory the plan needs.
void bench_plan(Report& report, const ModelConfig& config, const Options& options) {
  const auto plan_once = [&] { return build_training_step(config, {}); };
  const auto before = std::chrono::steady_clock::now();
  const TrainingStep step = plan_once();
  const double cold = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - before).count();
  const Timing plan = time_repeated(plan_once, options.seconds);
  report.add_value("plan/100 layers/first", cold, "ms");
  report.add_value("plan/100 layers/again", plan.best * 1e3, "ms");
  const double arena = static_cast<double>(step.plan->transient_bytes());
  report.add_value("arena/100 layers", arena / 1048576, "MiB", "peak live bytes",
                   static_cast<double>(step.plan->peak_live_bytes()) / arena);
  const TrainingStep lean = build_training_step(config, {.recompute_every = 10});
  report.add_value("arena/100 layers/recompute every 10", static_cast<double>(lean.plan->transient_bytes()) / 1048576,
                   "MiB");
}

// Planning grows linearly with depth.
void bench_deep_plan(Report& report, ModelConfig config, const Options& options) {
  config.layers = 4000;
  // Also by the clock of the processor, which a busy machine does not stretch as it does the one on the wall.
  double least = std::numeric_limits<double>::infinity();
  const auto plan_once = [&] {
    const std::clock_t before = std::clock();
    build_training_step(config, {});
    least = std::min(least, static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC);
  };
  const Timing plan = time_repeated(plan_once, options.seconds);
  report.add_value("plan/4000 layers", plan.best * 1e3, "ms");
  report.add_value("plan/4000 layers/processor", least * 1e3, "ms");
}

}  // namespace

void bench_steps(Report& report, const Options& options) {
  const ModelConfig small{.layers = 6, .width = 128, .heads = 4, .vocabulary = 256, .batch = 16, .time = 64};
  const ModelConfig deep{.layers = 100, .width = 64, .heads = 4, .vocabulary = 256, .batch = 8, .time = 32};
  // The shape of examples/runs/shakespeare.toml.
  const ModelConfig shakespeare{.layers = 12,
                                .width = 64,
                                .heads = 4,
                                .vocabulary = 256,
                                .batch = 16,
                                .time = 32,
                                .activation = Activation::relu};
  // What the default study trains, hundreds of times.
  ModelConfig study = StudyConfig{}.base.model;
  study.vocabulary = 16;
  bench_step(report, "6 layers d=128 T=64 B=16", small, options);
  ModelConfig small_post = small;
  small_post.scheme = "post";
  bench_step(report, "6 layers d=128 T=64 B=16 post", small_post, options);
  bench_scales(report, "6 layers d=128 T=64 B=16", small_post, options);
  bench_split(report, "6 layers d=128 T=64 B=16", small, options);
  bench_step(report, "12 layers d=64 T=32 B=16", shakespeare, options);
  bench_step(report, "100 layers d=64 T=32 B=8", deep, options);
  bench_step(report, "study, 12 layers d=32 T=32 B=8", study, options);
  bench_split(report, "study, 12 layers d=32 T=32 B=8", study, options);

  bench_probes(report, "6 layers d=128 T=64 B=16", small, options);
  bench_probes(report, "12 layers d=64 T=32 B=16", shakespeare, options);
  bench_probes(report, "100 layers d=64 T=32 B=8", deep, options);

  if (options.wants("members/2 on 2 threads over 1 on 1")) bench_members(report, small, options);
  if (options.wants("plan/100 layers") || options.wants("arena/100 layers")) bench_plan(report, deep, options);
  if (options.wants("plan/4000 layers")) bench_deep_plan(report, deep, options);
}

}  // namespace norma::bench
