#include "norma/lab/jacobian.h"

#include <algorithm>
#include <cmath>

#include "norma/core/error.h"
#include "norma/core/random.h"
#include "norma/graph/differentiate.h"
#include "norma/lab/singular_values.h"
#include "norma/ops/elementwise.h"

namespace norma {
namespace {

// Adds the product J^T v: input "v" in, output "pulled" out, both [batch, time, width].
void trace_pull(Graph& graph, const Model& model, const std::string& prefix, StackEnd end) {
  const auto first = std::find_if(model.sites.begin(), model.sites.end(),
                                  [&](const SublayerSite& site) { return site.name.starts_with(prefix); });
  NORMA_ASSERT(first != model.sites.end());
  const Wire out = end == StackEnd::after_final ? model.hidden : model.sites.back().stream_out;
  if (out.shape() != first->stream_in.shape())
    fail("the Jacobian of a stack needs an output for every token, but this model pools them");
  const Wire v = graph.input("v", out.type());
  const Wire outs[] = {out}, directions[] = {v}, wrt[] = {first->stream_in};
  graph.output("pulled", pull_back(outs, directions, wrt)[0] * 1.0);
}

double sum_of_squares(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v * v;
  return sum;
}

}  // namespace

double mean_square(const std::vector<double>& values) {
  return sum_of_squares(values) / static_cast<double>(values.size());
}

std::vector<double> measure_isometry(const Subject& subject, StackEnd end, int projections) {
  if (projections < 1) fail("a random projection needs at least one direction, not {}", projections);
  Rig rig(subject,
          [&](Graph& graph, const Model& model) { trace_pull(graph, model, stack_prefix(subject.model), end); },
          {.backward = true});
  rig.load_batch(0);
  std::vector<double> found(static_cast<std::size_t>(rig.members()), 0);
  for (int projection = 0; projection < projections; ++projection) {
    std::vector<double> lengths;
    for (int member = 0; member < rig.members(); ++member) {
      const RandomStream stream(subject.seeds[static_cast<std::size_t>(member)], "lab.jacobian",
                                static_cast<std::uint64_t>(projection));
      transform(rig.session(), "v", member, [&](std::size_t i, double) { return stream.normal(i); });
      lengths.push_back(sum_of_squares(rig.values("v", member)));
    }
    rig.run();
    for (int member = 0; member < rig.members(); ++member) {
      const auto m = static_cast<std::size_t>(member);
      found[m] += sum_of_squares(rig.values("pulled", member)) / lengths[m] / projections;
    }
  }
  return found;
}

std::vector<std::vector<double>> exact_singular_values(const Subject& subject, StackEnd end) {
  const ModelConfig& model = subject.model;
  const auto n = static_cast<std::size_t>(model.time * model.width);
  if (static_cast<std::int64_t>(n) > kLargestJacobian)
    fail("all singular values of {} tokens of width {} need {} backward passes; the most is {}", model.time,
         model.width, n, kLargestJacobian);
  Rig rig(subject, [&](Graph& graph, const Model& built) { trace_pull(graph, built, stack_prefix(model), end); },
          {.backward = true, .wide = true});
  rig.load_batch(0);
  const auto rows = static_cast<std::size_t>(model.batch);
  const auto time = static_cast<std::size_t>(model.time);
  // Every row of the batch is the first sequence; each is pulled along a direction of its own.
  for (int member = 0; member < rig.members(); ++member) {
    for (const char* input : {"tokens", "source"}) {
      if (!rig.session().plan().has_slot(input)) continue;
      const std::span<std::int32_t> ids = rig.session().tensor<std::int32_t>(input, member);
      const std::size_t length = ids.size() / rows;
      for (std::size_t row = 1; row < rows; ++row)
        std::copy_n(ids.begin(), length, ids.begin() + static_cast<std::ptrdiff_t>(row * length));
    }
    for (const char* input : {"lengths", "source_lengths"}) {
      if (!rig.session().plan().has_slot(input)) continue;
      const std::span<std::int32_t> lengths = rig.session().tensor<std::int32_t>(input, member);
      std::fill(lengths.begin(), lengths.end(), lengths[0]);
    }
  }
  NORMA_ASSERT(n == time * static_cast<std::size_t>(model.width));
  std::vector<std::vector<double>> jacobians(static_cast<std::size_t>(rig.members()), std::vector<double>(n * n));
  for (std::size_t first = 0; first < n; first += rows) {
    for (int member = 0; member < rig.members(); ++member)
      transform(rig.session(), "v", member, [&](std::size_t i, double) { return i % n == first + i / n ? 1.0 : 0.0; });
    rig.run();
    for (int member = 0; member < rig.members(); ++member) {
      const std::span<const double> pulled = rig.session().tensor<double>("pulled", member);
      std::vector<double>& jacobian = jacobians[static_cast<std::size_t>(member)];
      const std::size_t count = std::min(rows, n - first) * n;
      std::copy_n(pulled.begin(), count, jacobian.begin() + static_cast<std::ptrdiff_t>(first * n));
    }
  }
  std::vector<std::vector<double>> found;
  for (std::vector<double>& jacobian : jacobians) found.push_back(singular_values(std::move(jacobian), n));
  return found;
}

LogHistogram log_histogram(const std::vector<double>& values, double low, double high, int bins) {
  NORMA_ASSERT(bins > 0 && high > low && !values.empty());
  LogHistogram histogram{.low = low, .high = high, .share = std::vector<double>(static_cast<std::size_t>(bins), 0)};
  for (const double value : values) {
    const double place = value > 0 ? (std::log10(value) - low) / (high - low) * bins : 0;
    const int bin = std::clamp(static_cast<int>(std::floor(place)), 0, bins - 1);
    histogram.share[static_cast<std::size_t>(bin)] += 1 / static_cast<double>(values.size());
  }
  return histogram;
}

}  // namespace norma
