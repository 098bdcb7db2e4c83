#include "norma/lab/paths.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <utility>

#include "lab/workshop.h"
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

// Rigs of one model with gates. Each is lent to one thread at a time; a new one is made when all are out.
class GatedRigs {
 public:
  explicit GatedRigs(const Subject& subject) : subject_(subject) {
    if (std::exchange(subject_.share, {})) subject_.threads = 1;  // paths stand side by side instead
    free_.push_back(make());
  }

  std::size_t sublayers() const { return sublayers_; }

  // Calls use(rig) with a rig that nobody else has.
  void lend(const std::function<void(Rig&)>& use) {
    std::unique_ptr<Rig> rig = take();
    use(*rig);
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(rig));
  }

 private:
  std::unique_ptr<Rig> make() {
    std::size_t count = 0;
    auto rig = std::make_unique<Rig>(
        subject_, [&](Graph& graph, const Model& model) { trace_gates(graph, subject_, model, count); },
        Rig::Options{.backward = true});
    rig->load_batch(0);
    const std::lock_guard lock(mutex_);
    sublayers_ = count;
    return rig;
  }
  std::unique_ptr<Rig> take() {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        std::unique_ptr<Rig> rig = std::move(free_.back());
        free_.pop_back();
        return rig;
      }
    }
    return make();
  }

  Subject subject_;
  std::mutex mutex_;
  std::size_t sublayers_ = 0;
  std::vector<std::unique_ptr<Rig>> free_;
};

// The mean norm, over some paths of this length, of the gradient that comes along them, by member.
std::vector<double> norms_of_length(Rig& rig, std::size_t sublayers, std::size_t length, int samples) {
  std::vector<double> norms(static_cast<std::size_t>(rig.members()), 0);
  std::vector<std::size_t> order(sublayers);
  for (int sample = 0; sample < samples; ++sample) {
    std::iota(order.begin(), order.end(), 0);
    const RandomStream stream(static_cast<std::uint64_t>(sample), "lab.paths", length);
    for (std::size_t i = 0; i < length; ++i)
      std::swap(order[i], order[i + stream.below(i, static_cast<std::uint64_t>(sublayers - i))]);
    for (int member = 0; member < rig.members(); ++member) {
      for (std::size_t i = 0; i < sublayers; ++i)
        rig.write("gate/" + std::to_string(order[i]), i < length ? 1 : 0, member);
    }
    rig.run();
    for (std::size_t m = 0; m < norms.size(); ++m) {
      double sum = 0;
      for (const double v : rig.values("gradient", static_cast<int>(m))) sum += v * v;
      norms[m] += std::sqrt(sum) / samples;
    }
  }
  return norms;
}

double log_binomial(std::size_t n, std::size_t k) {
  return std::lgamma(static_cast<double>(n + 1)) - std::lgamma(static_cast<double>(k + 1)) -
         std::lgamma(static_cast<double>(n - k + 1));
}

}  // namespace

PathLengths measure_path_lengths(const Subject& subject, int samples_per_length) {
  if (samples_per_length < 1) fail("at least one path of each length is needed, not {}", samples_per_length);
  GatedRigs rigs(subject);
  const std::size_t n = rigs.sublayers();
  std::vector<std::vector<double>> norms(n + 1);
  spread(n + 1, subject.share, [&](std::size_t length) {
    const int samples = length == 0 || length == n ? 1 : samples_per_length;
    rigs.lend([&](Rig& rig) { norms[length] = norms_of_length(rig, n, length, samples); });
  });
  const std::size_t members = norms[0].size();
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
