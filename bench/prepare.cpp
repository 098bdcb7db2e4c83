#include "bench/prepare.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "norma/core/random.h"
#include "norma/train/optimiser.h"

namespace norma::bench {

namespace {

// Pairs of a node and a neighbour, sorted, each in both directions: a ring, and chords of random reach. An odd one out
// is a loop.
std::vector<std::int32_t> random_edges(std::int64_t nodes, std::int64_t count) {
  const RandomStream stream(1, "edges");
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
  for (std::uint64_t i = 0; static_cast<std::int64_t>(pairs.size()) + 1 < count; ++i) {
    const auto from = static_cast<std::int32_t>(i % static_cast<std::uint64_t>(nodes));
    const auto to = static_cast<std::int32_t>(stream.below(i, static_cast<std::uint64_t>(nodes)));
    pairs.insert(pairs.end(), {{from, to}, {to, from}});
  }
  while (static_cast<std::int64_t>(pairs.size()) < count) pairs.emplace_back(0, 0);
  std::sort(pairs.begin(), pairs.end());
  std::vector<std::int32_t> edges;
  for (const auto& [from, to] : pairs) edges.push_back(from);
  for (const auto& [from, to] : pairs) edges.push_back(to);
  return edges;
}

std::vector<std::int32_t> ids_for(const ModelConfig& config, const InputSpec& input, std::size_t count) {
  if (input.content == InputSpec::Content::lengths)
    return std::vector<std::int32_t>(count, static_cast<std::int32_t>(input.below));
  if (input.name == "edges") return random_edges(size_of(config, "nodes"), static_cast<std::int64_t>(count) / 2);
  const RandomStream stream(1, input.name);
  std::vector<std::int32_t> ids(count);
  for (std::size_t i = 0; i < count; ++i)
    ids[i] = static_cast<std::int32_t>(stream.below(i, static_cast<std::uint64_t>(input.below)));
  return ids;
}

std::vector<float> numbers_for(const InputSpec& input, std::size_t count) {
  const RandomStream stream(1, input.name);
  std::vector<float> numbers(count);
  for (std::size_t i = 0; i < count; ++i)
    numbers[i] = input.name == "degrees" ? 5.0f : static_cast<float>(stream.normal(i));
  return numbers;
}

}  // namespace

void prepare(Session& session, const TrainingStep& step, const ModelConfig& config) {
  for (const InputSpec& input : config.family->inputs(config)) {
    if (!session.plan().has_slot(input.name)) continue;
    const std::size_t count = session.handle(input.name).elements();
    const bool numbers = input.content == InputSpec::Content::numbers;
    const std::vector<float> values = numbers ? numbers_for(input, count) : std::vector<float>();
    const std::vector<std::int32_t> ids = numbers ? std::vector<std::int32_t>() : ids_for(config, input, count);
    for (int member = 0; member < session.members(); ++member) {
      if (numbers) {
        session.write<float>(input.name, values, member);
      } else {
        session.write<std::int32_t>(input.name, ids, member);
      }
    }
  }
  const ControlBlock control = control_block({.weight_decay = 0.01}, 1e-4, 1, 1);
  for (int member = 0; member < session.members(); ++member) {
    initialise(session, step.parameters, static_cast<std::uint64_t>(member + 1), member);
    initialise(session, step.kept, static_cast<std::uint64_t>(member + 1), member);
    session.write<float>("control", std::vector<float>(control.begin(), control.end()), member);
  }
}

}  // namespace norma::bench
