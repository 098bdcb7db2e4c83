#include "bench/split.h"

#include <array>
#include <chrono>
#include <numeric>

#include "bench/prepare.h"
#include "device/cpu/cpu_session.h"
#include "device/cpu/programme.h"
#include "norma/core/machine.h"
#include "norma/device/cpu/backend.h"
#include "norma/ops/linear.h"
#include "norma/ops/matmul.h"
#include "norma/ops/optimiser.h"
#include "norma/train/step.h"

namespace norma::bench {
namespace {

using Clock = std::chrono::steady_clock;

enum class Kind {
  forward,
  activated,
  input_gradient,
  weight_gradient,
  head,
  attention,
  norms,
  activations,
  bias_gradients,
  optimiser,
  other
};
constexpr std::array kKindNames = {"forward products",
                                   "forward products with activation",
                                   "input gradients",
                                   "weight gradients",
                                   "head and loss",
                                   "attention",
                                   "norms",
                                   "activations backward",
                                   "bias gradients",
                                   "optimiser and gradient norm",
                                   "everything else"};
constexpr std::size_t kKinds = kKindNames.size();

Kind kind_of(const Op& op) {
  if (const auto* linear = dynamic_cast<const Linear*>(&op))
    return linear->activation() == Activation::none ? Kind::forward : Kind::activated;
  if (const auto* product = dynamic_cast<const MatMul*>(&op))
    return product->product() == Product::reduce_rows ? Kind::weight_gradient : Kind::input_gradient;
  if (dynamic_cast<const Optimiser*>(&op) != nullptr) return Kind::optimiser;
  const auto named = [&](std::string_view part) { return op.name().find(part) != std::string_view::npos; };
  if (named("squared_sums") || named("clip_scale")) return Kind::optimiser;
  if (named("cross_entropy")) return Kind::head;
  if (named("attention")) return Kind::attention;
  if (named("norm")) return Kind::norms;
  if (named("activation_backward") || named("swiglu")) return Kind::activations;
  return named("sum_to") ? Kind::bias_gradients : Kind::other;
}

// The plan as a crew runs it for one member where nobody helps another, with a clock beside every piece of every
// worker. The best time of a piece is what it costs; what the fastest step of a session takes beyond that is waiting,
// and whatever else ran on the machine.
class TimedCrew {
 public:
  TimedCrew(const Plan& plan, std::byte* member, int threads)
      : plan_(plan),
        member_(member),
        team_(threads),
        barrier_(threads),
        programme_(make_programme(dependency_levels(plan, Watching::no), threads)),
        scratch_stride_(worker_bytes(plan) + 2 * kArenaAlignment),
        scratch_(scratch_stride_ * threads) {
    for (const auto& own : programme_.workers) best_.emplace_back(own.size(), 1e9);
  }

  void run() {
    team_.run([&](int worker) { work(worker); });
  }

  // Seconds of a step if nobody waited but for the slowest of each level, every piece at its best.
  double levels() const {
    double total = 0;
    std::vector<std::size_t> next(best_.size(), 0);
    for (bool more = true; more;) {
      double longest = 0;
      more = false;
      for (std::size_t worker = 0; worker < best_.size(); ++worker) {
        const std::vector<Piece>& own = programme_.workers[worker];
        double mine = 0;
        for (; next[worker] < own.size() && own[next[worker]].step >= 0; ++next[worker])
          mine += best_[worker][next[worker]];
        longest = std::max(longest, mine);
        if (next[worker] < own.size()) {  // a barrier, which all have at the same place
          ++next[worker];
          more = true;
        }
      }
      total += longest;
    }
    return total;
  }
  // Seconds of all workers by kind.
  std::array<double, kKinds> seconds() const {
    std::array<double, kKinds> total = {};
    for (std::size_t worker = 0; worker < best_.size(); ++worker) {
      for (std::size_t index = 0; index < best_[worker].size(); ++index) {
        const Piece& piece = programme_.workers[worker][index];
        if (piece.step < 0) continue;
        const Step& step = plan_.steps()[static_cast<std::size_t>(piece.step)];
        const Kind kind = kind_of(*plan_.nodes()[static_cast<std::size_t>(step.node)].op);
        total[static_cast<std::size_t>(kind)] += best_[worker][index];
      }
    }
    return total;
  }

 private:
  static double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  void work(int worker) {
    const std::vector<Piece>& own = programme_.workers[static_cast<std::size_t>(worker)];
    std::vector<double>& best = best_[static_cast<std::size_t>(worker)];
    for (std::size_t index = 0; index < own.size(); ++index) {
      if (own[index].step < 0) {
        barrier_.wait(worker, team_.patience(worker));
        continue;
      }
      const Clock::time_point start = Clock::now();
      run_piece(own[index], worker);
      best[index] = std::min(best[index], seconds_since(start));
    }
  }

  void run_piece(const Piece& piece, int worker) {
    const Step& step = plan_.steps()[static_cast<std::size_t>(piece.step)];
    const Call call{.base = member_,
                    .offsets = step.offsets.data(),
                    .inputs = step.inputs,
                    .scratch = member_ + step.scratch,
                    .worker_scratch = scratch_.data() + worker * scratch_stride_};
    const Phase& phase = phases_of(step)[static_cast<std::size_t>(piece.phase)];
    phase.run_range(call, piece.begin, piece.end);
  }

  const Plan& plan_;
  std::byte* const member_;
  Team team_;
  Barrier barrier_;
  const Programme programme_;
  const std::int64_t scratch_stride_;
  Arena scratch_;
  std::vector<std::vector<double>> best_;  // by worker and piece, in seconds
};

// Operations of the plan's products by kind.
std::array<double, kKinds> product_flops(const Plan& plan) {
  std::array<double, kKinds> flops = {};
  for (const Step& step : plan.steps()) {
    const Node& node = plan.nodes()[static_cast<std::size_t>(step.node)];
    const Kind kind = kind_of(*node.op);
    if (kind > Kind::weight_gradient) continue;
    std::vector<Type> in, out;
    for (const int id : node.inputs) in.push_back(plan.values()[static_cast<std::size_t>(id)].type);
    for (const int id : node.outputs) out.push_back(plan.values()[static_cast<std::size_t>(id)].type);
    flops[static_cast<std::size_t>(kind)] += node.op->cost(in, out).flops;
  }
  return flops;
}

}  // namespace

void bench_split(Report& report, const std::string& name, const ModelConfig& config, const Options& options) {
  const std::string entry = "split/" + name;
  if (!options.wants(entry)) return;
  const int threads = options.threads == 0 ? machine().cores : options.threads;
  const TrainingStep step = build_training_step(config, {.probes = false});
  CpuSession session(step.plan, {.members = 1, .threads = threads});
  prepare(session, step, config);
  std::byte* const member =
      reinterpret_cast<std::byte*>(session.tensor<float>("control").data()) - step.plan->slot("control").offset;
  TimedCrew crew(*step.plan, member, threads);
  // In turns, so that both see the same machine; the fastest of each counts.
  double sgemm = 0, fastest = 1e9;
  constexpr std::int64_t kSizes[] = {512, 1024};
  for (int round = 0; round < 5; ++round) {
    sgemm = std::max(sgemm, sgemm_limit({.seconds = options.seconds / 10, .threads = threads}, kSizes));
    time_repeated([&] { crew.run(); }, options.seconds / 10);
    fastest = std::min(fastest, time_repeated([&] { session.run(Watching::no); }, options.seconds / 5).best);
  }
  const std::array<double, kKinds> seconds = crew.seconds(), flops = product_flops(*step.plan);
  const double kernels = std::accumulate(seconds.begin(), seconds.end(), 0.0) / threads;
  const auto add_rate = [&](const std::string& what, double operations, double time) {
    const double rate = operations / time * 1e-9;
    report.add_value(entry + what, rate, "GFLOP/s", "sgemm beside it", rate / sgemm);
  };
  report.add_value(entry + "/sgemm", sgemm, "GFLOP/s");
  add_rate("/step", model_flops(config), fastest);
  add_rate("/step without waiting", model_flops(config), kernels);
  report.add_value(entry + "/waiting", 100 * (1 - kernels / fastest), "% of step");
  report.add_value(entry + "/waiting/since levels divide unevenly", 100 * (crew.levels() - kernels) / fastest,
                   "% of step");
  for (std::size_t kind = 0; kind < kKinds; ++kind) {
    const std::string of_kind = std::string("/") + kKindNames[kind];
    report.add_value(entry + of_kind, 100 * seconds[kind] / (threads * kernels), "% of kernels");
    if (flops[kind] > 0) add_rate(of_kind + "/rate", flops[kind], seconds[kind] / threads);
  }
}

}  // namespace norma::bench
