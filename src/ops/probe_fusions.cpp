// statistics, attention_probes: several probes in one op, for devices that pay for launches.
#include <algorithm>
#include <array>
#include <optional>

#include "norma/ops/attention_probe.h"
#include "norma/ops/fusions.h"
#include "norma/ops/statistics.h"
#include "ops/gather.h"

namespace norma {
namespace {

bool takes_statistics(const Rewriter& rewriter, int index) {
  return rewriter.as<StatisticsOp>(index) != nullptr || rewriter.as<StatisticsOfSeveral>(index) != nullptr;
}

constexpr int kFarthest = 8;  // nodes: probes follow each other

// What is probed lives until its op, in steps that do not watch too.
bool gather_statistics(Rewriter& rewriter, int index) {
  const GatherLimits limits{.farthest = kFarthest, .most = kMostStatistics, .most_bytes = std::int64_t{64} << 20};
  return gather(rewriter, index, takes_statistics, std::make_shared<StatisticsOfSeveral>(), limits);
}

// A node that probes attention, once or several times.
struct ProbesOfAttention {
  AttentionProbe one;
  int count;
};
std::optional<ProbesOfAttention> find_probes(const Rewriter& rewriter, int index) {
  if (const auto* one = rewriter.as<AttentionProbe>(index)) return ProbesOfAttention{*one, 1};
  if (const auto* several = rewriter.as<AttentionProbes>(index))
    return ProbesOfAttention{several->one(), several->count()};
  return {};
}

// Whether attentions of both nodes are alike, down to the types of what they read.
bool probe_alike(const Rewriter& rewriter, int index, const ProbesOfAttention& own, int next,
                 const ProbesOfAttention& other) {
  const auto &first = rewriter.node(index).inputs, &second = rewriter.node(next).inputs;
  const std::size_t each = first.size() / static_cast<std::size_t>(own.count);
  if (own.one.attributes() != other.one.attributes() || each * static_cast<std::size_t>(other.count) != second.size())
    return false;
  const Graph& graph = rewriter.graph();
  for (std::size_t i = 0; i < each; ++i) {
    if (graph.value(first[i]).type != graph.value(second[i]).type) return false;
  }
  return true;
}

// Probes of attentions that are alike -> one op in the place of the last.
bool gather_attention_probes(Rewriter& rewriter, int index) {
  constexpr std::int64_t kMostBytes = std::int64_t{96} << 20;
  if (!rewriter.alive(index)) return false;
  const std::optional<ProbesOfAttention> own = find_probes(rewriter, index);
  if (!own) return false;
  for (int next = index + 1; next < std::min(rewriter.size(), index + kFarthest); ++next) {
    const std::optional<ProbesOfAttention> other = find_probes(rewriter, next);
    if (!other) continue;
    const int count = own->count + other->count;
    if (count > kMostAttentionProbes || !probe_alike(rewriter, index, *own, next, *other)) return false;
    std::vector<int> inputs = rewriter.node(index).inputs, outputs = rewriter.node(index).outputs;
    if (!rewriter.unread_before(outputs, next, index)) return false;
    const Node& later = rewriter.node(next);
    inputs.insert(inputs.end(), later.inputs.begin(), later.inputs.end());
    outputs.insert(outputs.end(), later.outputs.begin(), later.outputs.end());
    std::int64_t bytes = 0;
    for (const int id : inputs) bytes += rewriter.graph().value(id).type.bytes();
    if (bytes > kMostBytes) return false;
    auto op = std::make_shared<AttentionProbes>(own->one.layout(), own->one.options(), count);
    rewriter.replace(next, std::array{index}, std::move(op), inputs, std::move(outputs));
    return true;
  }
  return false;
}

}  // namespace

std::vector<Rewrite> probe_fusions() {
  return {{"statistics", gather_statistics}, {"attention_probes", gather_attention_probes}};
}

}  // namespace norma
