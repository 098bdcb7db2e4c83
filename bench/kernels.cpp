#include "bench/kernels.h"

#include <fmt/format.h>

#include <functional>
#include <vector>

#include "bench/isolate.h"
#include "norma/graph/differentiate.h"

#include "norma/norms/row.h"
#include "norma/ops/attention.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/reduce.h"

namespace norma::bench {
namespace {

Timing time_kernel(const Isolated& isolated, const Options& options) {
  Session session(isolated.plan, {.members = 1, .threads = options.threads});
  fill_inputs(session);
  return time_repeated([&] { session.run(); }, options.seconds);
}

using NormBuilder = std::function<Wire(Graph&, Wire x)>;

struct NormCase {
  std::string name;  // of the op, without "_norm"
  NormBuilder build;
};

std::vector<NormCase> row_norms() {
  const auto vector = [](Graph& g, const char* name, Wire x) {
    return g.parameter(name, {{x.shape().channels()}, x.dtype()});
  };
  return {
      {"layer", [=](Graph& g, Wire x) { return layer_norm(x, vector(g, "gain", x), vector(g, "bias", x)); }},
      {"rms", [=](Graph& g, Wire x) { return rms_norm(x, vector(g, "gain", x)); }},
  };
}

void bench_norm(Report& report, const NormCase& norm, std::int64_t rows, std::int64_t width, const std::string& limit,
                const Options& options) {
  const double tensor = 4e-9 * static_cast<double>(rows * width);  // gigabytes
  const Type type{{rows, width}, DType::f32};
  const auto add = [&](const std::string& what, double tensors, const Isolated& isolated) {
    report.add_rate(fmt::format("norm/{}/{}/{}x{}", norm.name, what, rows, width), tensors * tensor,
                    time_kernel(isolated, options), "GB/s", limit);
  };
  {
    Graph g;
    g.output("y", norm.build(g, g.input("x", type)));
    add("forward", 2, isolate(g, norm.name + "_norm"));
  }
  // A pre-norm step: the sum is read by the norm and by the stream, its gradient comes from both.
  Graph g;
  const Wire x = g.input("x", type), f = g.input("f", type), dy = g.input("dy", type),
             dstream = g.input("dstream", type);
  const Wire sum = x + f;
  const Wire y = norm.build(g, sum);
  Wires wrt = g.parameters();
  wrt.insert(wrt.begin(), f);
  const Wires out = {y, sum}, dout = {dy, dstream};
  const Wires gradients = pull_back(out, dout, wrt);
  g.output("y", y);
  g.output("sum", sum);
  for (std::size_t i = 0; i < wrt.size(); ++i) g.output("d" + std::to_string(i), gradients[i]);
  add("backward", 3, isolate(g, norm.name + "_norm_backward"));
  return;
  add("add forward", 4, isolate(g, "add_" + norm.name + "_norm"));
  add("backward add", 4, isolate(g, norm.name + "_norm_backward_add"));
}

}  // namespace

void bench_norms(Report& report, const Options& options) {
  for (const NormCase& norm : row_norms()) {
    bench_norm(report, norm, 131072, 1024, "copy_gbps", options);
    bench_norm(report, norm, 4096, 512, "cache_copy_gbps", options);
  }
}

void bench_attention(Report& report, const Options& options) {
  struct Case {
    std::int64_t batch, heads, time, width;
  };
  for (const Case c : {Case{16, 4, 64, 32}, Case{8, 4, 32, 16}, Case{4, 8, 256, 64}}) {
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
    report.add_rate("attention/forward/" + shape, 4 * flops, time_kernel(isolate(g, "attention"), options), "GFLOP/s",
                    "sgemm_gflops");
    report.add_rate("attention/backward/" + shape, 10 * flops, time_kernel(isolate(g, "attention_backward"), options),
                    "GFLOP/s", "sgemm_gflops");
  }
}

}  // namespace norma::bench
