#include "models/norm_sites.h"

#include <numeric>
#include <string>

#include "norma/core/error.h"
#include "norma/graph/graph.h"
#include "norma/norms/row.h"
#include "norma/ops/elementwise.h"
#include "norma/schemes/trace.h"

namespace norma {
namespace {

// Where images are small, groups that the user did not ask for have at least so many numbers. Of one number a norm
// leaves 0, of two their order: a U-Net on images of 1 x 1 (width 32, 300 steps on `mixture`) ends at a loss of 1.0,
// 0.50, 0.13 and 0.11 with 1, 2, 4 and 8 of them.
constexpr std::int64_t kFewestInGroup = 8;

std::int64_t positions_of_sample(Wire x) { return x.shape().rank() < 3 ? 1 : x.shape().rows() / x.shape()[0]; }

struct Statistic {
  std::int64_t numbers;  // that it is taken over; 2 where that is no matter
  std::string sizes;     // where they come from
  const char* remedy;
  // Of one number: without a mean only its sign is left, whose slope is 0; with one nothing.
  const char* left = "answer a constant";
};

Statistic of_row(std::int64_t width, const char* left) {
  return {width, fmt::format("the stream is {} wide", width), "a larger width, or no norm there", left};
}

Statistic statistic_of(const NormInfo& info, Wire x, const NormSettings& settings) {
  const std::int64_t width = x.shape().channels(), rows = x.shape().rows(), positions = positions_of_sample(x);
  switch (info.kind) {
    case NormKind::instance:
      return {positions, fmt::format("samples have {} position", positions),
              "samples of more than one position, or a norm over channels such as layer"};
    case NormKind::group:
      return {
          positions * (width / settings.groups),
          fmt::format("samples have {} position, and {} channels are in {} groups", positions, width, settings.groups),
          "fewer groups (model.norm_groups), or samples of more positions"};
    case NormKind::sample:
      return {positions * width, fmt::format("samples have {} position of {} channel", positions, width),
              "more channels, or samples of more positions"};
    case NormKind::graph:
    case NormKind::pair:
    case NormKind::mean:
      return {settings.segments.ids ? 2 : rows, fmt::format("the graph has {} node", rows),
              "more nodes, or a norm of single nodes such as layer"};
    case NormKind::layer:
    case NormKind::weightless: return of_row(width, "answer a constant");
    case NormKind::rms:
    case NormKind::prms:
    case NormKind::scale: return of_row(width, "leave their signs alone");
    case NormKind::batch:  // add_statistics refuses it in training; a model that is only looked at may have one row
    case NormKind::dyt: break;
  }
  return {2, "", ""};
}

void refuse_single_numbers(const NormInfo& info, std::string_view site, Wire x, const NormSettings& settings) {
  const Statistic statistic = statistic_of(info, x, settings);
  if (statistic.numbers != 1) return;
  fail("{} at '{}' would be over single numbers ({}) and {}, so that nothing before it could learn; expected {}",
       info.title, site, statistic.sizes, statistic.left, statistic.remedy);
}

}  // namespace

// A group of one channel would leave nothing of what is added to a channel, as a U-Net's condition is.
std::int64_t NormSites::groups_of(Wire x) const {
  if (groups_ > 0) return groups_;
  const std::int64_t width = x.shape().channels();
  std::int64_t groups = std::gcd(NormSettings().groups, width);
  // Of sequences it must not depend on their length: a model is the same for all of them.
  if (positions_ == NormPositions::image) {
    const auto too_small = [&] {
      return groups == width || positions_of_sample(x) * (width / groups) < kFewestInGroup;
    };
    while (groups % 2 == 0 && too_small()) groups /= 2;
  }
  return groups;
}

Wire NormSites::apply(std::string_view name, std::string_view site, Wire x, std::string_view role,
                      const OptimiserRules& rules) {
  if (name == "unit") return scale_norm(x, {}, kShortestUnit);
  const std::string where = parameters_.graph().full_name(site);
  const auto scope = parameters_.graph().scope(site);
  const NormInfo& info = norm_called(name, configured_);
  const std::int64_t width = x.shape().channels();
  NormWires wires;
  for (const NormTensor& tensor : info.parameters) {
    // "1 + w": what is stored, decayed and initialised is the distance from one.
    const bool from_one = scheme_.norm_gain == "1 + w" && tensor.name == "gain";
    const double start = tensor.initial_value(width) - (from_one ? 1 : 0);
    ParameterSpec spec{.name = std::string(tensor.name), .init = Init::constant(start), .role = "norm"};
    rules.apply(role, spec);
    const Wire stored = parameters_.share(tensor.shape(width), spec);
    wires.at(tensor.name) = from_one ? stored + 1.0 : stored;
  }
  NormSettings settings;
  if (const Wire graph_of = parameters_.graph().find("graph_of")) {
    // Of a batch of graphs: norms over nodes are of each graph, and there is room for nodes that are not there.
    if (info.kind == NormKind::batch)
      fail(
          "{} over a batch of graphs would count the room for nodes that are not there; expected graphnorm, which is "
          "of each graph, or a norm of single nodes such as layernorm",
          info.title);
    settings.segments = {.ids = graph_of, .count = parameters_.graph().find("targets").shape()[0]};
  }
  settings.groups = groups_of(x);
  if (statistics_ == BatchStatistics::running) settings.mode = NormMode::evaluate;
  if (statistics_ != BatchStatistics::of_batch) add_statistics(info, x, wires);
  refuse_single_numbers(info, where, x, settings);
  return apply_norm(info, x, wires, settings);
}

void NormSites::add_statistics(const NormInfo& info, Wire x, NormWires& wires) {
  if (info.states.empty()) return;
  if (statistics_ == BatchStatistics::followed && x.shape()[0] == 1)
    fail(
        "{} over a batch of 1: its statistics would be those of the one sample that they are applied to, and in "
        "evaluation others; expected a batch of at least 2, a norm of single samples such as group or layer, or "
        "model.norm_statistics = \"frozen\"",
        info.title);
  Graph& graph = parameters_.graph();
  const bool again = static_cast<bool>(graph.find(graph.full_name(info.states.front().name)));
  if (again && statistics_ == BatchStatistics::followed) return;
  const std::int64_t width = x.shape().channels();
  for (const NormTensor& tensor : info.states) {
    wires.at(tensor.name) = parameters_.keep(
        tensor.shape(width),
        {.name = std::string(tensor.name), .init = Init::constant(tensor.initial_value(width)), .role = "norm"});
  }
}

}  // namespace norma
