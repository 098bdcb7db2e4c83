#include "norma/lab/lens.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "norma/core/error.h"
#include "norma/norms/row.h"
#include "norma/ops/elementwise.h"
#include "norma/train/step.h"

namespace norma {
namespace {

// log p over the last axis.
std::vector<double> log_softmax(std::vector<double> logits, std::size_t classes) {
  for (std::size_t row = 0; row < logits.size(); row += classes) {
    const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(row);
    const auto end = begin + static_cast<std::ptrdiff_t>(classes);
    const double largest = *std::max_element(begin, end);
    double sum = 0;
    for (auto i = begin; i != end; ++i) sum += std::exp(*i - largest);
    const double shift = largest + std::log(sum);
    for (auto i = begin; i != end; ++i) *i -= shift;
  }
  return logits;
}

struct LensComparison {
  double divergence = 0, agreement = 0;
};

LensComparison compare(const std::vector<double>& whole, const std::vector<double>& cut, std::size_t classes) {
  LensComparison result;
  const double rows = static_cast<double>(whole.size() / classes);
  for (std::size_t row = 0; row < whole.size(); row += classes) {
    std::size_t best = 0, best_cut = 0;
    for (std::size_t i = 0; i < classes; ++i) {
      result.divergence += std::exp(whole[row + i]) * (whole[row + i] - cut[row + i]) / rows;
      if (whole[row + i] > whole[row + best]) best = i;
      if (cut[row + i] > cut[row + best_cut]) best_cut = i;
    }
    if (best == best_cut) result.agreement += 1 / rows;
  }
  return result;
}

// Solves A X = B for symmetric positive definite A [n, n], B [n, m] in place (Cholesky).
void solve(std::vector<double>& a, std::vector<double>& b, std::size_t n, std::size_t m) {
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t k = 0; k < j; ++k) {
      for (std::size_t i = j; i < n; ++i) a[i * n + j] -= a[i * n + k] * a[j * n + k];
    }
    const double pivot = std::sqrt(a[j * n + j]);
    for (std::size_t i = j; i < n; ++i) a[i * n + j] /= pivot;
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      for (std::size_t c = 0; c < m; ++c) b[i * m + c] -= a[i * n + k] * b[k * m + c];
    }
    for (std::size_t c = 0; c < m; ++c) b[i * m + c] /= a[i * n + i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) {
      for (std::size_t c = 0; c < m; ++c) b[i * m + c] -= a[k * n + i] * b[k * m + c];
    }
    for (std::size_t c = 0; c < m; ++c) b[i * m + c] /= a[i * n + i];
  }
}

// Sums for one ridge regression onto one-hot targets.
class Ridge {
 public:
  Ridge(std::size_t features, std::size_t classes)
      : n_(features + 1), m_(classes), gram_(n_ * n_, 0), cross_(n_ * m_, 0) {}

  // `row` has n features; a constant is added.
  void add(const double* row, std::int32_t target) {
    const auto feature = [&](std::size_t i) { return i + 1 < n_ ? row[i] : 1.0; };
    for (std::size_t i = 0; i < n_; ++i) {
      const double x = feature(i);
      for (std::size_t j = 0; j <= i; ++j) gram_[i * n_ + j] += x * feature(j);
      cross_[i * m_ + static_cast<std::size_t>(target)] += x;
    }
  }

  void fit(double ridge) {
    double trace = 0;
    for (std::size_t i = 0; i < n_; ++i) trace += gram_[i * n_ + i];
    for (std::size_t i = 0; i < n_; ++i) {
      gram_[i * n_ + i] += ridge * trace / static_cast<double>(n_);
      for (std::size_t j = 0; j < i; ++j) gram_[j * n_ + i] = gram_[i * n_ + j];
    }
    solve(gram_, cross_, n_, m_);
  }

  std::int32_t predict(const double* row) const {
    std::vector<double> scores(cross_.end() - static_cast<std::ptrdiff_t>(m_), cross_.end());
    for (std::size_t i = 0; i + 1 < n_; ++i) {
      for (std::size_t c = 0; c < m_; ++c) scores[c] += row[i] * cross_[i * m_ + c];
    }
    return static_cast<std::int32_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
  }

 private:
  std::size_t n_, m_;
  std::vector<double> gram_, cross_;
};

// Rows of a stream, as many as there are targets: those of a sample that is classified as a whole come to their mean.
std::vector<double> by_target(Rig& rig, std::vector<double> states, std::size_t targets, std::size_t width,
                              int member) {
  const std::size_t rows = states.size() / width;
  if (rows == targets) return states;
  std::vector<std::int32_t> sample_of;
  if (rig.session().find("graph_of")) {
    sample_of = rig.session().read<std::int32_t>("graph_of", member);
  } else {
    for (std::size_t row = 0; row < rows; ++row) sample_of.push_back(static_cast<std::int32_t>(row * targets / rows));
  }
  std::vector<double> means(targets * width, 0), counts(targets, 0);
  for (std::size_t row = 0; row < rows; ++row) {
    const auto sample = static_cast<std::size_t>(sample_of[row]);
    if (sample >= targets) continue;  // room that no graph needs
    ++counts[sample];
    for (std::size_t i = 0; i < width; ++i) means[sample * width + i] += states[row * width + i];
  }
  for (std::size_t i = 0; i < means.size(); ++i) means[i] /= std::max(1.0, counts[i / width]);
  return means;
}

}  // namespace

LogitLens measure_lens(const Subject& given) {
  Subject subject = given;
  const auto classes = static_cast<std::size_t>(subject.model.family->output(subject.model).shape.channels());
  const auto outputs = [](Graph& graph, const Model& model) {
    graph.output("loss", model.loss);
    graph.output("logits", model.logits * 1.0);
  };
  Rig whole(subject, outputs, {.model = {.logits = true}});
  subject.weights = weights_of(whole.session(), whole.parameters());
  whole.load_evaluation_batch(0);
  whole.run();
  std::vector<std::vector<double>> expected;
  for (int member = 0; member < whole.members(); ++member)
    expected.push_back(log_softmax(whole.values("logits", member), classes));
  LogitLens lens;
  for (std::int64_t layers = 0; layers <= subject.model.layers; ++layers) {
    LayerOrder order{.layers = std::vector<std::int64_t>(static_cast<std::size_t>(layers))};
    std::iota(order.layers.begin(), order.layers.end(), 0);
    Rig rig(subject, outputs, {.model = {.logits = true, .order = order}});
    rig.load_evaluation_batch(0);
    rig.run();
    std::vector<double> loss, divergence, agreement;
    for (int member = 0; member < rig.members(); ++member) {
      const LensComparison found = compare(expected[static_cast<std::size_t>(member)],
                                           log_softmax(rig.values("logits", member), classes), classes);
      loss.push_back(rig.number("loss", member));
      divergence.push_back(found.divergence);
      agreement.push_back(found.agreement);
    }
    lens.loss.push_back(std::move(loss));
    lens.divergence.push_back(std::move(divergence));
    lens.agreement.push_back(std::move(agreement));
  }
  return lens;
}

Probes measure_probes(const Subject& subject, const ProbeOptions& options) {
  std::vector<std::string> borders;
  std::vector<std::size_t> widths;
  Rig rig(subject, [&](Graph& graph, const Model& model) {
    const std::string prefix = stack_prefix(subject.model);
    const auto border = [&](Wire x) {
      borders.push_back("probe/" + std::to_string(borders.size()));
      widths.push_back(static_cast<std::size_t>(x.shape().channels()));
      graph.output(borders.back(), layer_norm(x, {}, {}));
    };
    for (std::size_t i = 0; i < model.sites.size(); ++i) {
      const SublayerSite& site = model.sites[i];
      if (!site.name.starts_with(prefix + "layers.")) continue;
      if (borders.empty()) border(site.stream_in);
      const bool last = i + 1 == model.sites.size() || layer_of(model.sites[i + 1].name) != layer_of(site.name);
      if (last) border(site.stream_out);
    }
  });
  const auto each = [&](int member, auto&& action) {
    const std::vector<std::int32_t> targets = rig.session().read<std::int32_t>("targets", member);
    for (std::size_t border = 0; border < borders.size(); ++border) {
      const std::size_t width = widths[border];
      const std::vector<double> states =
          by_target(rig, rig.values(borders[border], member), targets.size(), width, member);
      for (std::size_t token = 0; token < targets.size(); ++token) {
        if (targets[token] != kIgnored) action(border, &states[token * width], targets[token]);
      }
    }
  };
  const auto members = static_cast<std::size_t>(rig.members());
  const auto classes = static_cast<std::size_t>(subject.model.family->output(subject.model).shape.channels());
  std::vector<Ridge> untaught;
  for (const std::size_t width : widths) untaught.emplace_back(width, classes);
  std::vector<std::vector<Ridge>> probes(members, untaught);
  for (int batch = 0; batch < options.batches; ++batch) {
    rig.load_batch(static_cast<std::uint64_t>(batch));
    rig.run();
    for (std::size_t m = 0; m < members; ++m)
      each(static_cast<int>(m),
           [&](std::size_t border, const double* row, std::int32_t target) { probes[m][border].add(row, target); });
  }
  std::vector<std::vector<double>> found(borders.size(), std::vector<double>(members, 0));
  for (std::vector<Ridge>& member : probes) {
    for (Ridge& probe : member) probe.fit(options.ridge);
  }
  const std::int64_t batches = std::min<std::int64_t>(2, subject.source->evaluation_batches());
  double counted = 0;
  for (std::int64_t batch = 0; batch < batches; ++batch) {
    rig.load_evaluation_batch(batch);
    counted += rig.counted_targets();
    rig.run();
    for (std::size_t m = 0; m < members; ++m)
      each(static_cast<int>(m), [&](std::size_t border, const double* row, std::int32_t target) {
        if (probes[m][border].predict(row) == target) found[border][m] += 1;
      });
  }
  if (counted == 0) fail("linear probes are judged on held-out targets, but there are none");
  for (std::vector<double>& border : found) {
    for (double& share : border) share /= counted;
  }
  return {std::move(found), counted};
}

}  // namespace norma
