// What a phase may read and write, from what the graph and the kernel say.
#pragma once

#include <algorithm>
#include <vector>

#include "device/cpu/levels.h"

namespace norma::test {

struct Bytes {
  std::int64_t begin, end;
  bool overlaps(const Bytes& other) const { return begin < other.end && other.begin < end; }
};

struct Touches {
  std::vector<Bytes> inputs, outputs, scratch;
};

inline bool names(const Phase& phase, int output) {
  return phase.touches && std::ranges::count(phase.touches->outputs, output) > 0;
}

inline Touches touches_of(const Plan& plan, const Step& step, const std::vector<Phase>& phases, std::size_t phase) {
  Touches touches;
  const Node& node = plan.nodes()[static_cast<std::size_t>(step.node)];
  const auto add = [&](std::vector<Bytes>& to, int id, std::int64_t offset) {
    if (offset >= 0) to.push_back({offset, offset + plan.values()[static_cast<std::size_t>(id)].type.bytes()});
  };
  const std::optional<Touched>& own = phases[phase].touches;
  for (std::size_t in = 0; in < node.inputs.size(); ++in) {
    if (!own || std::ranges::count(own->inputs, static_cast<int>(in)) > 0)
      add(touches.inputs, node.inputs[in], step.offsets[in]);
  }
  for (std::size_t out = 0; out < node.outputs.size(); ++out) {
    const bool named = std::ranges::any_of(phases, [&](const Phase& any) { return names(any, static_cast<int>(out)); });
    if (own ? names(phases[phase], static_cast<int>(out)) : !named)
      add(touches.outputs, node.outputs[out], step.offsets[node.inputs.size() + out]);
  }
  if (step.kernel->needs.scratch_bytes > 0)
    touches.scratch.push_back({step.scratch, step.scratch + step.kernel->needs.scratch_bytes});
  return touches;
}

inline Touches touches_of(const Plan& plan, const Task& task) {
  const Step& step = plan.steps()[static_cast<std::size_t>(task.step)];
  return touches_of(plan, step, phases_of(step), static_cast<std::size_t>(task.phase));
}

// Whether one writes what the other reads or writes.
inline bool conflict(const Touches& a, const Touches& b) {
  const auto overlap = [](const std::vector<Bytes>& some, const std::vector<Bytes>& others) {
    return std::ranges::any_of(some, [&](const Bytes& one) {
      return std::ranges::any_of(others, [&](const Bytes& other) { return one.overlaps(other); });
    });
  };
  const auto written_over = [&](const Touches& writer, const Touches& other) {
    for (const auto* writes : {&writer.outputs, &writer.scratch}) {
      for (const auto* touched : {&other.inputs, &other.outputs, &other.scratch}) {
        if (overlap(*writes, *touched)) return true;
      }
    }
    return false;
  };
  return written_over(a, b) || written_over(b, a);
}

}  // namespace norma::test
