#include <algorithm>
#include <cmath>

#include "lab/analyses/lanczos.h"
#include "lab/analyses/stack_jacobian.h"
#include "norma/core/error.h"
#include "norma/core/random.h"
#include "norma/graph/differentiate.h"
#include "norma/ops/elementwise.h"

namespace norma {
namespace {

// And J u: input "u" in, output "pushed" out. J^T v is linear in v, so that its own transpose is J.
void trace_push(Graph& graph, const StackEnds& stack, Wire pulled) {
  const Wire u = graph.input("u", stack.in.type());
  const Wire outs[] = {pulled}, directions[] = {u}, wrt[] = {graph.find("v")};
  graph.output("pushed", pull_back(outs, directions, wrt)[0] * 1.0);
}

// Only the first sequence of each batch.
class FirstSequence final : public Source {
 public:
  explicit FirstSequence(std::shared_ptr<const Source> source) : source_(std::move(source)) {}

  void fill(std::uint64_t index, std::uint64_t seed, Batch& batch) const override {
    source_->fill(index, seed, batch);
    batch = batch.rows(0, 1);
  }
  std::int64_t evaluation_batches() const override { return source_->evaluation_batches(); }
  void fill_evaluation(std::int64_t index, Batch& batch) const override {
    source_->fill_evaluation(index, batch);
    batch = batch.rows(0, 1);
  }
  std::int64_t vocabulary() const override { return source_->vocabulary(); }
  std::optional<double> optimum() const override { return source_->optimum(); }
  std::string describe() const override { return source_->describe(); }

 private:
  std::shared_ptr<const Source> source_;
};

Subject first_sequence(const Subject& subject) {
  Subject first = subject;
  if (subject.model.batch == 1) return first;  // one graph has many rows
  first.source = std::make_shared<FirstSequence>(subject.source);
  first.model.batch = 1;
  return first;
}

// Products with both squares of the stack's Jacobian. Vectors come in pairs, one pair for each member: v, which is
// multiplied by J J^T, and u, which is multiplied by J^T J; while one is pulled back the other is pushed forward.
class SquaredJacobian {
 public:
  SquaredJacobian(const Subject& subject, StackEnd end)
      : rig_(subject,
             [&](Graph& graph, const Model& model) {
               const StackEnds stack = ends_of(model, subject.model, end);
               trace_push(graph, stack, trace_pull(graph, stack));
             },
             {.backward = true}) {
    rig_.load_batch(0);
  }

  std::size_t size() const { return static_cast<std::size_t>(rig_.plan().slot("v").type.shape.elements()); }

  std::vector<Vector> times(std::vector<Vector> pairs) {
    for (std::size_t pass = 0; pass < 2; ++pass) {
      for (std::size_t i = 0; i < pairs.size(); ++i) rig_.write(side(i + pass), pairs[i], member(i));
      rig_.run();
      for (std::size_t i = 0; i < pairs.size(); ++i)
        pairs[i] = rig_.values(side(i + pass)[0] == 'v' ? "pulled" : "pushed", member(i));
    }
    return pairs;
  }

 private:
  static int member(std::size_t i) { return static_cast<int>(i / 2); }
  static const char* side(std::size_t i) { return i % 2 == 0 ? "v" : "u"; }

  Rig rig_;
};

// Single precision leaves this of squared singular values, relative to the largest.
constexpr double kNothing = 1e-6;

// The Gauss rule of squared singular values as a histogram of singular values; `whole` when it has all there are.
LogHistogram histogram_of(const std::vector<GaussNode>& rule, bool whole) {
  LogHistogram histogram;
  std::vector<double> values;
  for (const GaussNode& one : rule) values.push_back(std::sqrt(std::max(one.node, 0.0)));
  if (!std::isfinite(rule.back().node)) {
    histogram.add(rule.back().node, 1);
    return histogram;
  }
  std::size_t first = whole || rule.size() == 1 ? 0 : 1;
  while (values[first] < std::sqrt(kNothing) * values.back()) ++first;
  for (std::size_t i = 0; i < first; ++i) histogram.unresolved += rule[i].weight;
  if (first > 0) histogram.unresolved_below = values[first];
  for (std::size_t i = first; i < rule.size(); ++i) {
    const double before = whole || i == first ? values[i] : values[i - 1];
    const double after = whole || i + 1 == rule.size() ? values[i] : values[i + 1];
    histogram.add_between(std::sqrt(before * values[i]), values[i], rule[i].weight / 2);
    histogram.add_between(values[i], std::sqrt(values[i] * after), rule[i].weight / 2);
  }
  return histogram;
}

LogHistogram mean_of(const LogHistogram& a, const LogHistogram& b) {
  LogHistogram mean = a;
  for (std::size_t bin = 0; bin < mean.share.size(); ++bin) mean.share[bin] = (a.share[bin] + b.share[bin]) / 2;
  mean.unresolved = (a.unresolved + b.unresolved) / 2;
  mean.unresolved_below = std::max(a.unresolved_below, b.unresolved_below);
  return mean;
}

std::vector<LogHistogram> projected_histograms(const Subject& subject, StackEnd end, int steps) {
  SquaredJacobian jacobian(subject, end);
  std::vector<Vector> starts;
  for (const std::uint64_t seed : subject.seeds) {
    for (std::uint64_t chain = 0; chain < 2; ++chain) {
      const RandomStream stream(seed, "lab.jacobian.density", chain);
      Vector& start = starts.emplace_back(jacobian.size());
      stream.each_normal(start.size(), [&](std::size_t i, double normal) { start[i] = normal; });
    }
  }
  const auto product = [&](const std::vector<Vector>& pairs) { return jacobian.times(pairs); };
  std::vector<LogHistogram> chains, members;
  for (const Tridiagonal& known :
       lanczos(product, std::move(starts), {.steps = steps, .nothing = kNothing, .basis = Basis::kept}))
    chains.push_back(histogram_of(gauss_rule(known), known.a.size() < static_cast<std::size_t>(steps)));
  for (std::size_t i = 0; i < chains.size(); i += 2) members.push_back(mean_of(chains[i], chains[i + 1]));
  return members;
}

}  // namespace

void LogHistogram::add(double value, double weight) { add_between(value, value, weight); }

void LogHistogram::add_between(double from, double to, double weight) {
  if (!std::isfinite(from) || !std::isfinite(to)) {
    std::fill(share.begin(), share.end(), std::nan(""));
    return;
  }
  const double bins = static_cast<double>(share.size());
  const auto place = [&](double value) {
    return value > 0 ? std::clamp((std::log10(value) - low) / (high - low) * bins, 0.0, bins) : 0.0;
  };
  const double begin = place(from), end = place(to);
  const double first = std::min(std::floor(begin), bins - 1), last = std::max(first, std::ceil(end) - 1);
  for (double bin = first; bin <= last; ++bin) {
    const double overlap = std::min(end, bin + 1) - std::max(begin, bin);
    share[static_cast<std::size_t>(bin)] += end > begin ? weight * overlap / (end - begin) : weight;
  }
}

LogHistogram log_histogram(const std::vector<double>& values) {
  LogHistogram histogram;
  for (const double value : values) histogram.add(value, 1 / static_cast<double>(values.size()));
  return histogram;
}

SingularValueHistogram measure_singular_values(const Subject& subject, StackEnd end, const HistogramOptions& options) {
  if (options.steps < 1) fail("a Gauss rule of singular values needs at least one step, not {}", options.steps);
  if (sequences_touch(subject, end)) return {.members = projected_histograms(subject, end, options.steps)};
  const Subject first = first_sequence(subject);
  if (numbers_of_a_sample(subject.model, end) > options.most_exact)
    return {.members = projected_histograms(first, end, options.steps)};
  SingularValueHistogram found{.exact = true, .members = {}};
  for (const std::vector<double>& values : all_singular_values(subject, end))
    found.members.push_back(log_histogram(values));
  return found;
}

}  // namespace norma
