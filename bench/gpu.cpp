#include "bench/gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "bench/gpu_case.h"
#include "bench/prepare.h"
#include "norma/backends/cuda.h"
#include "norma/backends/device.h"
#include "norma/device/cuda/session.h"

namespace norma::bench {
namespace {

std::string product_limit(Precision precision) { return std::string(name_of(precision)) + "_product_tflops"; }

// The same with a residual stream of bf16.
ModelConfig in_bf16(ModelConfig model) {
  model.stream = StreamWidth::bf16;
  return model;
}

std::vector<GpuCase> gpu_cases() {
  // As the programs that the targets are measured against: the head is the token table, GELU by tanh.
  ModelConfig small{.layers = 12, .width = 128, .heads = 4, .vocabulary = 256, .batch = 16, .time = 128};
  ModelConfig deep{.layers = 1000, .width = 256, .heads = 4, .vocabulary = 512, .batch = 32, .time = 128};
  ModelConfig gpt2{.layers = 12, .width = 768, .heads = 12, .vocabulary = 50304, .batch = 32, .time = 1024};
  for (ModelConfig* const model : {&small, &deep, &gpt2}) {
    model->activation = Activation::gelu_tanh;
    model->tied = true;
  }
  deep.scheme = "deepnorm";
  const ModelConfig study{.layers = 12, .width = 32, .heads = 4, .vocabulary = 32, .batch = 8, .time = 32};
  using enum Precision;
  return {{"12 layers d=128 T=128 B=16 bf16", small, 1, bf16},
          {"12 layers d=128 T=128 B=16 tf32", small, 1, tf32},
          {"12 layers d=128 T=128 B=16 f32", small, 1, f32},
          {"12 layers d=128 T=128 B=16 x64 bf16", small, 64, bf16},
          {"12 layers d=128 T=128 B=16 x64 tf32", small, 64, tf32},
          {"12 layers d=32 T=32 B=8 x64 f32", study, 64, f32},
          {"1000 layers d=256 T=128 B=32 deepnorm bf16", deep, 1, bf16},
          {"1000 layers d=256 T=128 B=32 deepnorm recomputed by 16 bf16", deep, 1, bf16, 16},
          {"1000 layers d=256 T=128 B=32 deepnorm lean bf16", deep, 1, bf16, 0, Keep::lean},
          {"GPT-2 124M T=1024 B=32 bf16", gpt2, 1, bf16},
          {"GPT-2 124M T=1024 B=32 lean bf16", gpt2, 1, bf16, 0, Keep::lean},
          {"12 layers d=128 T=128 B=16 x64 stream bf16", in_bf16(small), 64, bf16},
          {"1000 layers d=256 T=128 B=32 deepnorm stream bf16", in_bf16(deep), 1, bf16},
          {"1000 layers d=256 T=128 B=32 deepnorm lean stream bf16", in_bf16(deep), 1, bf16, 0, Keep::lean},
          {"GPT-2 124M T=1024 B=32 stream bf16", in_bf16(gpt2), 1, bf16},
          {"GPT-2 124M T=1024 B=32 tf32", gpt2, 1, tf32}};
}

// The step as it is trained: replayed, with one read of the loss at the end.
double seconds_of_step(Session& session, double seconds, Watching watching = Watching::no) {
  const Handle loss = session.handle("loss");
  const auto wait = [&] { session.number(loss, 0); };
  for (int i = 0; i < 2; ++i) session.run(watching);
  wait();
  auto start = std::chrono::steady_clock::now();
  session.run(watching);
  wait();
  const double one_step = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const int steps = one_step > 0.1 ? 4 : 10;  // long ones need fewer to hide the wait
  double best = 0;
  start = std::chrono::steady_clock::now();
  for (int round = 0;
       round < 3 || std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds;
       ++round) {
    const auto before = std::chrono::steady_clock::now();
    for (int i = 0; i < steps; ++i) session.run(watching);
    wait();
    const double one = std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count() / steps;
    if (round == 0 || one < best) best = one;
  }
  return best;
}

// By op and what it makes: its time, and what it does of the card's limits.
void add_profile(Report& report, const std::string& name, Session& session, int members, Precision precision) {
  struct Sum {
    double seconds = 0, flops = 0, bytes = 0;
    int calls = 0;
  };
  std::map<std::string, Sum> by_op;
  const Plan& plan = session.plan();
  const std::vector<double> seconds = seconds_by_step(session);
  double total = 0;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    if (plan.steps()[i].only_watched) continue;
    const Node& node = plan.nodes()[static_cast<std::size_t>(plan.steps()[i].node)];
    std::vector<Type> in, out;
    for (const int id : node.inputs) in.push_back(plan.values()[static_cast<std::size_t>(id)].type);
    for (const int id : node.outputs) out.push_back(plan.values()[static_cast<std::size_t>(id)].type);
    const Cost cost = node.op->cost(in, out);
    Sum& sum = by_op[fmt::format("{} {}", node.op->name(), out[0].str())];
    sum.seconds += seconds[i];
    sum.flops += cost.flops * members;
    sum.bytes += cost.bytes * members;
    ++sum.calls;
    total += seconds[i];
  }
  const double products = report.limit(product_limit(precision)) * 1e12;
  const double copy = report.limit("gpu_copy_gbs") * 1e9;
  for (const auto& [op, sum] : by_op) {
    const double least = std::max(sum.flops / products, sum.bytes / copy);
    report.add_value(fmt::format("gpu profile/{}/{} ({} calls, {:.1f} % of kernel time)", name, op, sum.calls,
                                 100 * sum.seconds / total),
                     sum.seconds * 1e6, "us", "bytes or operations of the card", least / sum.seconds);
  }
}

void bench_gpu_step(Report& report, const GpuCase& one, const Options& options) {
  const std::string name = "gpu step/" + one.name, profile = "gpu profile/" + one.name;
  if (!options.wants(name) && !options.wants(profile)) return;
  const auto start = std::chrono::steady_clock::now();
  const TrainingStep step = build_training_step(one.model, {.recompute_every = one.recompute,
                                                            .keep = one.keep,
                                                            .narrow = one.precision == Precision::bf16,
                                                            .backend = &cuda_backend()});
  const auto session = make_session(step.plan, {.members = one.members, .tf32 = one.precision == Precision::tf32});
  prepare(*session, step, one.model);
  session->run(Watching::no);
  session->number("loss", 0);
  const double first = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const std::int64_t things = one.things > 0 ? one.things : one.model.batch * one.model.time;
  const double all = static_cast<double>(things * one.members);
  const double seconds = seconds_of_step(*session, options.seconds);
  const double flops = model_flops(one.model) * one.members;
  const std::string limit = product_limit(one.precision);
  report.add_value(name + "/" + one.thing, all / seconds, one.thing + "/s");
  report.add_value(name + "/step", seconds * 1e3, "ms");
  report.add_value(name, flops / seconds * 1e-12, "TFLOP/s", limit, flops / seconds * 1e-12 / report.limit(limit));
  report.add_value(name + "/memory", static_cast<double>(session->memory_bytes()) / 1073741824, "GiB");
  report.add_value(name + "/first step", first, "s");
  // Probes are read at every tenth step, unless told otherwise.
  const double watched = seconds_of_step(*session, options.seconds / 4, Watching::yes);
  report.add_value(name + "/probes", 10 * (watched - seconds) / seconds, "% of a step");
  // A step that has gone wrong may take any time.
  report.add_value(name + "/gradient norm", session->number("gradient_norm", 0), "");
  report.add_value(name + "/kernels", static_cast<double>(step.plan->steps().size()), "launches");
  if (options.wants(profile)) add_profile(report, one.name, *session, one.members, one.precision);
}

}  // namespace

void measure_gpu_limits(Report& report, const Options&) {
  report.set_limit("gpu_copy_gbs", card_copy_rate(std::int64_t{2} << 30) * 1e-9);
  report.set_limit("f32_product_tflops", card_product_rate(8192, DType::f32, false) * 1e-12);
  report.set_limit("tf32_product_tflops", card_product_rate(8192, DType::f32, true) * 1e-12);
  report.set_limit("bf16_product_tflops", card_product_rate(8192, DType::bf16, false) * 1e-12);
}

void bench_gpu_steps(Report& report, const Options& options) {
  for (const GpuCase& one : gpu_cases()) bench_gpu_step(report, one, options);
  for (const GpuCase& one : family_cases()) bench_gpu_step(report, one, options);
  for (const GpuCase& one : study_cases()) bench_gpu_step(report, one, options);
}

}  // namespace norma::bench
