#include "norma/lab/jacobian.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "lab/analyses/stack_jacobian.h"
#include "norma/core/error.h"
#include "norma/core/random.h"
#include "norma/graph/differentiate.h"
#include "norma/lab/singular_values.h"
#include "norma/lab/smoothing.h"
#include "norma/ops/elementwise.h"
#include "norma/train/step.h"

namespace norma {
namespace {

double sum_of_squares(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v * v;
  return sum;
}

// Every row of the batch becomes the first sample.
void repeat_first_sample(Rig& rig, const ModelConfig& model) {
  const auto rows = static_cast<std::size_t>(model.batch);
  for (int member = 0; member < rig.members(); ++member) {
    for (const InputSpec& input : model.family->inputs(model)) {
      const Handle tensor = rig.session().find(input.name);
      if (!tensor || input.content == InputSpec::Content::targets) continue;
      std::vector<std::byte> bytes(tensor.bytes());
      rig.session().read(tensor, member, bytes);
      const std::size_t length = bytes.size() / rows;
      for (std::size_t row = 1; row < rows; ++row)
        std::copy_n(bytes.begin(), length, bytes.begin() + static_cast<std::ptrdiff_t>(row * length));
      rig.session().stage(tensor, member, bytes);
    }
  }
}

// Whether the stream has one shape from the first of these sites to the last.
bool shape_kept(std::span<const SublayerSite> sites) {
  return std::ranges::all_of(sites, [&](const SublayerSite& site) {
    const Shape& shape = sites.front().stream_in.shape();
    return site.stream_in.shape() == shape && site.stream_out.shape() == shape;
  });
}

// The longest row of sites of one stack between which the stream keeps its shape, the first of several.
std::span<const SublayerSite> longest_part(std::span<const SublayerSite> sites) {
  std::span<const SublayerSite> longest;
  for (std::size_t begin = 0; begin < sites.size(); ++begin) {
    std::size_t end = begin;
    while (end < sites.size() && stack_of(sites[end].name) == stack_of(sites[begin].name) &&
           shape_kept(sites.subspan(begin, end + 1 - begin)))
      ++end;
    if (end - begin > longest.size()) longest = sites.subspan(begin, end - begin);
  }
  return longest;
}

}  // namespace

StackEnds ends_of(const Model& model, const ModelConfig& config, StackEnd end) {
  const std::string prefix = stack_prefix(config);
  const auto in_last = [&](const SublayerSite& site) { return site.name.starts_with(prefix + "layers."); };
  const std::span<const SublayerSite> all = model.sites;
  const auto first = std::ranges::find_if(all, in_last);
  NORMA_ASSERT(first != all.end());
  const auto last_stack_sites = all.subspan(static_cast<std::size_t>(first - all.begin()));
  const std::span<const SublayerSite> longest = longest_part(all);
  const bool whole = shape_kept(last_stack_sites);
  if (!whole && longest.empty()) fail("every layer of this model changes the shape of its stream");
  const std::span<const SublayerSite> part = whole ? last_stack_sites : longest;
  StackEnds ends{.in = part.front().stream_in, .out = part.back().stream_out};
  if (!whole) ends.part = fmt::format("{} to {}", layer_of(part.front().name), layer_of(part.back().name));
  if (end == StackEnd::before_final) return ends;
  if (!whole) fail("it would be that of {} alone, where the stream keeps its shape", ends.part);
  ends.out = model.hidden;
  if (ends.out.shape().elements() != ends.in.shape().elements())
    fail("the Jacobian of a stack needs an output for every token, but this model pools them");
  return ends;
}

std::string why_no_jacobian(const ModelConfig& config, StackEnd end) {
  Graph graph;
  const Model model = build_model(graph, config);
  try {
    ends_of(model, config, end);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

std::string jacobian_part(const ModelConfig& config) {
  Graph graph;
  return ends_of(build_model(graph, config), config, StackEnd::before_final).part;
}

Wire trace_pull(Graph& graph, const StackEnds& stack) {
  const Wire v = graph.input("v", stack.out.type());
  const Wire outs[] = {stack.out}, directions[] = {v}, wrt[] = {stack.in};
  const Wire pulled = pull_back(outs, directions, wrt)[0];
  graph.output("pulled", pulled * 1.0);
  return pulled;
}

std::int64_t numbers_of_a_sample(const ModelConfig& config, StackEnd end) {
  Graph graph;
  return ends_of(build_model(graph, config), config, end).in.shape().elements() / config.batch;
}

bool sequences_touch(const Subject& subject, StackEnd end) {
  if (subject.model.batch > 1 && reads_graph(subject.model)) return true;  // graphs of a batch share one list of edges
  Rig rig(subject, [&](Graph& graph, const Model& model) { trace_pull(graph, ends_of(model, subject.model, end)); },
          {.backward = true});
  rig.load_batch(0);
  const std::size_t length = rig.values("v").size() / static_cast<std::size_t>(subject.model.batch);
  transform(rig.session(), "v", 0,
            [&](std::size_t i, double) { return i < length ? 1.0 + static_cast<double>(i) : 0; });
  rig.run();
  const std::vector<double> pulled = rig.values("pulled");
  return std::any_of(pulled.begin() + static_cast<std::ptrdiff_t>(length), pulled.end(),
                     [](double x) { return x != 0; });
}

std::vector<std::vector<double>> all_singular_values(const Subject& subject, StackEnd end) {
  const ModelConfig& model = subject.model;
  const auto n = static_cast<std::size_t>(numbers_of_a_sample(model, end));
  if (static_cast<std::int64_t>(n) > kLargestJacobian)
    fail("all singular values of a stream of {} numbers need as many backward passes; the most is {}", n,
         kLargestJacobian);
  Rig rig(subject, [&](Graph& graph, const Model& built) { trace_pull(graph, ends_of(built, model, end)); },
          {.backward = true, .wide = true});
  rig.load_batch(0);
  const auto rows = static_cast<std::size_t>(model.batch);
  // Each row of the batch is pulled along a direction of its own.
  repeat_first_sample(rig, model);
  std::vector<std::vector<double>> jacobians(static_cast<std::size_t>(rig.members()), std::vector<double>(n * n));
  for (std::size_t first = 0; first < n; first += rows) {
    for (int member = 0; member < rig.members(); ++member)
      transform(rig.session(), "v", member, [&](std::size_t i, double) { return i % n == first + i / n ? 1.0 : 0.0; });
    rig.run();
    for (int member = 0; member < rig.members(); ++member) {
      const std::vector<double> pulled = rig.session().read<double>("pulled", member);
      std::vector<double>& jacobian = jacobians[static_cast<std::size_t>(member)];
      const std::size_t count = std::min(rows, n - first) * n;
      std::copy_n(pulled.begin(), count, jacobian.begin() + static_cast<std::ptrdiff_t>(first * n));
    }
  }
  std::vector<std::vector<double>> found;
  for (std::vector<double>& jacobian : jacobians) found.push_back(singular_values(std::move(jacobian), n));
  return found;
}

double mean_square(const std::vector<double>& values) {
  return sum_of_squares(values) / static_cast<double>(values.size());
}

std::vector<double> measure_isometry(const Subject& subject, StackEnd end, int projections) {
  if (projections < 1) fail("a random projection needs at least one direction, not {}", projections);
  Rig rig(subject, [&](Graph& graph, const Model& model) { trace_pull(graph, ends_of(model, subject.model, end)); },
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
  if (sequences_touch(subject, end))
    fail("the sequences of a batch touch in this model: one sequence has no Jacobian of its own");
  return all_singular_values(subject, end);
}

}  // namespace norma
