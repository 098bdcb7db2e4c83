#include "bench/kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "bench/isolate.h"
#include "device/cpu/cpu_session.h"
#include "device/cpu/team.h"
#include "norma/graph/differentiate.h"

#include "norma/norms/fusions.h"
#include "norma/norms/norm.h"
#include "norma/ops/attention.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/modulate.h"
#include "norma/ops/reduce.h"
#include "norma/ops/upsample.h"

namespace norma::bench {
namespace {

Timing time_kernel(const Isolated& isolated, const Options& options) {
  CpuSession session(isolated.plan, {.members = 1, .threads = options.threads});
  fill_inputs(session);
  return time_repeated([&] { session.run(); }, options.seconds);
}

// A kernel that should run at the speed of memory, beside copies from its first input to its first output. Both are
// timed in turns and in the same memory, and the median of their ratios counts: on a virtual machine the speed of
// memory changes from one allocation, and from one tenth of a second, to the next.
struct MemoryTiming {
  Timing kernel;
  double times_copy;  // how many times as long as a copy the kernel takes
};
MemoryTiming time_beside_copy(const Isolated& isolated, const Options& options) {
  CpuSession session(isolated.plan, {.members = 1, .threads = options.threads});
  fill_inputs(session);
  const std::span<float> from = session.tensor<float>("in0"), to = session.tensor<float>("out0");
  Team team(session.threads());
  const auto copy = [&] { copy_in_parallel(team, to.data(), from.data(), from.size_bytes()); };
  const auto kernel = [&] { session.run(); };
  return {time_repeated(kernel, options.seconds / 2), time_ratio(kernel, copy, options.seconds / 2)};
}

// Tensors moved at least, as in docs/benchmarks.md: a norm whose statistics fit in cache reads once, others twice.
struct Passes {
  double forward, backward;
};
Passes passes_of(NormKind kind) {
  const bool over_positions =
      kind == NormKind::batch || kind == NormKind::instance || kind == NormKind::group || kind == NormKind::sample;
  return over_positions ? Passes{3, 5} : Passes{2, 3};
}

// Statistics over positions are taken per sample; everything else sees plain rows.
Shape shape_of(NormKind kind, std::int64_t rows, std::int64_t width) {
  constexpr std::int64_t kPositions = 256;
  const bool samples = kind == NormKind::instance || kind == NormKind::group || kind == NormKind::sample;
  return samples ? Shape{rows / kPositions, kPositions, width} : Shape{rows, width};
}

// One norm over [rows, width], forward and backward, and the fusions with the residual add where it has them.
void bench_norm(Report& report, const NormInfo& info, std::int64_t rows, std::int64_t width, const std::string& limit,
                const Options& options) {
  const double tensor = 4e-9 * static_cast<double>(rows * width);  // gigabytes
  const Type type{shape_of(info.kind, rows, width), DType::f32};
  const Passes passes = passes_of(info.kind);
  const auto add = [&](const std::string& what, double tensors, const Isolated& isolated) {
    const std::string name = fmt::format("norm/{}/{}/{}x{}", info.name, what, rows, width);
    if (!options.wants(name)) return;
    const MemoryTiming timing = time_beside_copy(isolated, options);
    const double copy_gbps = 2 * tensor / (timing.kernel.best / timing.times_copy);
    report.add_rate(name, tensors * tensor, timing.kernel, "GB/s", limit, copy_gbps);
  };
  // A pre-norm step: the sum is read by the norm and by the stream, its gradient comes from both.
  Graph g;
  const Wire x = g.input("x", type), f = g.input("f", type), dy = g.input("dy", type),
             dstream = g.input("dstream", type);
  const Wire sum = x + f;
  const int norm_node = static_cast<int>(g.nodes().size());
  const Wire y = apply_norm(info, sum, declare_norm(g, info, width));
  const std::string op(g.node(norm_node).op->name());
  Wires wrt = g.parameters();
  wrt.insert(wrt.begin(), f);
  const Wires out = {y, sum}, dout = {dy, dstream};
  const Wires gradients = pull_back(out, dout, wrt);
  g.output("y", y);
  g.output("sum", sum);
  for (std::size_t i = 0; i < wrt.size(); ++i) g.output("d" + std::to_string(i), gradients[i]);
  add("forward", passes.forward, isolate(g, op));
  add("backward", passes.backward, isolate(g, op + "_backward"));
  const auto fired = fuse(g, norm_fusions());
  if (fired.at("add_norm") > 0) add("add forward", passes.forward + 2, isolate(g, "add_" + op));
  if (fired.at("norm_backward_add") > 0) add("backward add", passes.backward + 1, isolate(g, op + "_backward_add"));
}

}  // namespace

void bench_norms(Report& report, const Options& options) {
  for (const NormInfo& info : norms()) {
    if (info.kind == NormKind::graph || info.kind == NormKind::pair || info.kind == NormKind::mean)
      continue;  // no kernels of their own
    bench_norm(report, info, 131072, 1024, "copy_gbps", options);
    bench_norm(report, info, 4096, 512, "cache_copy_gbps", options);
    // Rows of this width do not stay in the first cache between the passes over them.
    if (info.kind == NormKind::layer || info.kind == NormKind::rms)
      bench_norm(report, info, 32768, 4096, "copy_gbps", options);
  }
}

void bench_attention(Report& report, const Options& options) {
  struct Case {
    std::int64_t batch, heads, time, width;
  };
  constexpr Case kStudied{8, 4, 32, 8};  // what `norma study` trains
  for (const Case c : {kStudied, Case{8, 4, 32, 16}, Case{16, 4, 64, 32}, Case{4, 8, 256, 64}}) {
    Graph g;
    const Wire qkv = g.input("qkv", {{c.batch, c.time, 3 * c.heads * c.width}, DType::f32});
    const Wire context = attention_packed(qkv, {.heads = c.heads, .mask = Mask::causal});
    const Wire out[] = {context}, dout[] = {g.input("dcontext", context.type())}, wrt[] = {qkv};
    g.output("dqkv", pull_back(out, dout, wrt)[0]);
    g.output("context", context);
    const double pairs = static_cast<double>(c.batch * c.heads) * static_cast<double>(c.time * (c.time + 1)) / 2;
    const double flops = 1e-9 * pairs * static_cast<double>(c.width);
    const std::string shape = fmt::format("B={} H={} T={} dh={}", c.batch, c.heads, c.time, c.width);
    // Per pair and channel: two products of 2 operations forward, five backward (the scores are computed again).
    const auto add = [&](const std::string& name, double work, const char* op) {
      if (options.wants(name))
        report.add_rate(name, work, time_kernel(isolate(g, op), options), "GFLOP/s", "sgemm_gflops");
    };
    add("attention/forward/" + shape, 4 * flops, "attention");
    add("attention/backward/" + shape, 10 * flops, "attention_backward");
  }
}

void bench_conditions(Report& report, const Options& options) {
  const auto add = [&](const Graph& g, const std::string& name, double tensors, double gigabytes, const char* op) {
    if (!options.wants(name)) return;
    report.add_rate(name, tensors * gigabytes, time_kernel(isolate(g, op), options), "GB/s", "cache_copy_gbps");
  };
  {
    constexpr std::int64_t kBatch = 64, kPositions = 64, kWidth = 512;
    Graph g;
    const Wire x = g.input("x", {{kBatch, kPositions, kWidth}, DType::f32}),
               scale = g.input("scale", {{kBatch, kWidth}, DType::f32}),
               shift = g.input("shift", {{kBatch, kWidth}, DType::f32});
    const Wire y = modulate(x, scale, shift);
    const Wire out[] = {y}, dout[] = {g.input("dy", x.type())}, wrt[] = {x, scale, shift};
    const Wires gradients = pull_back(out, dout, wrt);
    g.output("y", y);
    for (std::size_t i = 0; i < gradients.size(); ++i) g.output("d" + std::to_string(i), gradients[i]);
    const double tensor = 4e-9 * static_cast<double>(x.shape().elements());
    const std::string shape = fmt::format("{}x{}x{}", kBatch, kPositions, kWidth);
    add(g, "modulate/forward/" + shape, 2, tensor, "modulate");
    add(g, "modulate/backward/" + shape, 3, tensor, "modulate_backward");
  }
  Graph g;
  const Wire x = g.input("x", {{32, 16, 16, 64}, DType::f32});
  const Wire y = upsample(x);
  const Wire out[] = {y}, dout[] = {g.input("dy", y.type())}, wrt[] = {x};
  g.output("dx", pull_back(out, dout, wrt)[0]);
  g.output("y", y);
  const double tensor = 4e-9 * static_cast<double>(x.shape().elements());
  add(g, "upsample/forward/32x16x16x64", 5, tensor, "upsample");
  add(g, "upsample/backward/32x16x16x64", 5, tensor, "upsample_backward");
}

}  // namespace norma::bench
