#include "norma/lab/paths.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "norma/core/error.h"
#include "norma/core/random.h"
#include "norma/graph/differentiate.h"
#include "norma/ops/elementwise.h"

namespace norma {
namespace {

std::vector<SublayerSite> chain_of(const Subject& subject, const Model& model) {
  std::vector<SublayerSite> chain;
  const std::string prefix = stack_prefix(subject.model) + "layers.";
  for (const SublayerSite& site : model.sites) {
    if (!site.name.starts_with(prefix)) continue;
    const bool linked = chain.empty() || chain.back().stream_out == site.stream_in;
    if (!linked || !subject.model.scheme->streams.empty())
      throw NotBuiltError(fmt::format("scheme '{}': paths are counted where each sublayer has one skip and one branch",
                                      subject.model.scheme.asked()));
    chain.push_back(site);
  }
  return chain;
}

Wire pulled(Wire out, Wire direction, Wire wrt) {
  const Wire outs[] = {out}, directions[] = {direction}, all[] = {wrt};
  return pull_back(outs, directions, all)[0];
}

// Sublayer by sublayer, backwards: the part of the gradient that comes through the branch and the part that does not,
// each times an input of its own.
void trace_gates(Graph& graph, const Subject& subject, const Model& model, std::size_t& count) {
  const std::vector<SublayerSite> chain = chain_of(subject, model);
  count = chain.size();
  const Wire last[] = {chain.back().stream_out};
  Wire v = differentiate(model.loss, last)[0];
  for (std::size_t i = chain.size(); i-- > 0;) {
    const SublayerSite& site = chain[i];
    const Wire whole = pulled(site.stream_out, v, site.stream_in);
    const Wire at_branch = pulled(site.stream_out, v, site.branch);
    const Wire branch = at_branch ? pulled(site.branch, at_branch, site.stream_in) : Wire();
    const Wire gate = graph.input("gate/" + std::to_string(i), {{1}, v.dtype()});
    if (!branch) fail("the branch at '{}' passes no gradient back", site.name);
    v = (whole - branch) * (1.0 - gate) + branch * gate;
  }
  graph.output("gradient", v * 1.0);
}

double log_binomial(std::size_t n, std::size_t k) {
  return std::lgamma(static_cast<double>(n + 1)) - std::lgamma(static_cast<double>(k + 1)) -
         std::lgamma(static_cast<double>(n - k + 1));
}

}  // namespace

PathLengths measure_path_lengths(const Subject& subject, int samples_per_length) {
  if (samples_per_length < 1) fail("at least one path of each length is needed, not {}", samples_per_length);
  std::size_t n = 0;
  Rig rig(subject, [&](Graph& graph, const Model& model) { trace_gates(graph, subject, model, n); },
          {.backward = true});
  rig.load_batch(0);
  const auto members = static_cast<std::size_t>(rig.members());
  std::vector<std::vector<double>> norms(n + 1, std::vector<double>(members, 0));
  std::vector<std::size_t> sublayers_of(n);
  for (std::size_t length = 0; length <= n; ++length) {
    const int samples = length == 0 || length == n ? 1 : samples_per_length;
    for (int sample = 0; sample < samples; ++sample) {
      std::iota(sublayers_of.begin(), sublayers_of.end(), 0);
      const RandomStream stream(static_cast<std::uint64_t>(sample), "lab.paths", length);
      for (std::size_t i = 0; i < length; ++i)
        std::swap(sublayers_of[i], sublayers_of[i + stream.below(i, static_cast<std::uint64_t>(n - i))]);
      for (int member = 0; member < rig.members(); ++member) {
        for (std::size_t i = 0; i < n; ++i)
          rig.write("gate/" + std::to_string(sublayers_of[i]), i < length ? 1 : 0, member);
      }
      rig.run();
      for (std::size_t m = 0; m < members; ++m) {
        double sum = 0;
        for (const double v : rig.values("gradient", static_cast<int>(m))) sum += v * v;
        norms[length][m] += std::sqrt(sum) / samples;
      }
    }
  }
  PathLengths found{.share = std::move(norms), .mean_length = std::vector<double>(members, 0)};
  for (std::size_t m = 0; m < members; ++m) {
    double largest = -INFINITY, total = 0;
    for (std::size_t k = 0; k <= n; ++k) {
      found.share[k][m] = log_binomial(n, k) + std::log(found.share[k][m]);
      largest = std::max(largest, found.share[k][m]);
    }
    for (std::size_t k = 0; k <= n; ++k) total += found.share[k][m] = std::exp(found.share[k][m] - largest);
    for (std::size_t k = 0; k <= n; ++k) {
      found.share[k][m] /= total;
      found.mean_length[m] += static_cast<double>(k) * found.share[k][m];
    }
  }
  return found;
}

}  // namespace norma
