#include "device/cpu/levels.h"

#include <algorithm>
#include <map>

#include "norma/device/cpu/backend.h"

namespace norma {
namespace {

constexpr int kNever = -1;

// The last level that wrote or read each byte of a member's memory.
class MemoryHistory {
 public:
  explicit MemoryHistory(std::int64_t bytes) { parts_[0] = {}, parts_[bytes] = {}; }

  int last_write(std::int64_t begin, std::int64_t end) {
    int level = kNever;
    visit(begin, end, [&](Part& part) { level = std::max(level, part.written); });
    return level;
  }
  int last_use(std::int64_t begin, std::int64_t end) {
    int level = kNever;
    visit(begin, end, [&](Part& part) { level = std::max({level, part.written, part.read}); });
    return level;
  }
  void read(std::int64_t begin, std::int64_t end, int level) {
    visit(begin, end, [&](Part& part) { part.read = std::max(part.read, level); });
  }
  // What came before a write is behind it for good: the pieces become one again.
  void write(std::int64_t begin, std::int64_t end, int level) {
    const auto first = cut(begin), last = cut(end);
    first->second = {.written = level, .read = kNever};
    parts_.erase(std::next(first), last);
  }

 private:
  struct Part {
    int written = kNever, read = kNever;
  };
  using Parts = std::map<std::int64_t, Part>;  // from this byte to the next key

  Parts::iterator cut(std::int64_t at) {
    const auto after = parts_.lower_bound(at);
    if (after != parts_.end() && after->first == at) return after;
    return parts_.emplace_hint(after, at, std::prev(after)->second);
  }
  template <typename Function>
  void visit(std::int64_t begin, std::int64_t end, Function function) {
    const auto last = cut(end);
    for (auto part = cut(begin); part != last; ++part) function(part->second);
  }

  Parts parts_;
};

struct ByteRange {
  std::int64_t begin = 0, end = 0;
};

struct Footprint {
  std::vector<ByteRange> reads, writes;
};

Footprint footprint_of(const Plan& plan, const Step& step) {
  Footprint footprint;
  const Node& node = plan.nodes()[static_cast<std::size_t>(step.node)];
  const auto add = [&](std::vector<ByteRange>& ranges, std::int64_t offset, std::int64_t bytes) {
    if (offset >= 0 && bytes > 0) ranges.push_back({offset, offset + bytes});
  };
  const auto bytes_of = [&](int value) { return plan.values()[static_cast<std::size_t>(value)].type.bytes(); };
  for (std::size_t in = 0; in < node.inputs.size(); ++in)
    add(footprint.reads, step.offsets[in], bytes_of(node.inputs[in]));
  for (std::size_t out = 0; out < node.outputs.size(); ++out)
    add(footprint.writes, step.offsets[node.inputs.size() + out], bytes_of(node.outputs[out]));
  add(footprint.writes, step.scratch, step.kernel->needs.scratch_bytes);
  return footprint;
}

// Of one tile, from the op's own count of work: a core does some 100 operations or moves 20 bytes in a nanosecond, and
// calling a kernel costs a little. What follows the first phase of a kernel mostly adds up what that left.
double tile_nanoseconds(const Plan& plan, const Step& step, std::size_t phase) {
  const Node& node = plan.nodes()[static_cast<std::size_t>(step.node)];
  std::vector<Type> in, out;
  for (const int id : node.inputs) in.push_back(plan.values()[static_cast<std::size_t>(id)].type);
  for (const int id : node.outputs) out.push_back(plan.values()[static_cast<std::size_t>(id)].type);
  const Cost cost = node.op->cost(in, out);
  const std::vector<Phase>& phases = phases_of(step);
  const double usual = phases.size() == 1 ? 1 : phase == 0 ? 0.7 : 0.3 / static_cast<double>(phases.size() - 1);
  const double share = phases[phase].share > 0 ? phases[phase].share : usual;
  return 150 + share * (cost.flops / 100 + cost.bytes / 20) / static_cast<double>(phases[phase].tiles);
}

// The last level that a first phase which prepares one input has to wait for.
int ready_to_prepare(const Plan& plan, const Step& step, int input, MemoryHistory& history) {
  const Node& node = plan.nodes()[static_cast<std::size_t>(step.node)];
  const int value = node.inputs[static_cast<std::size_t>(input)];
  const std::int64_t from = step.offsets[static_cast<std::size_t>(input)];
  const std::int64_t bytes = plan.values()[static_cast<std::size_t>(value)].type.bytes();
  return std::max(history.last_write(from, from + bytes),
                  history.last_use(step.scratch, step.scratch + step.kernel->needs.scratch_bytes));
}

}  // namespace

const std::vector<Phase>& phases_of(const Step& step) { return static_cast<const CpuProgram&>(*step.kernel).phases; }

std::vector<Level> dependency_levels(const Plan& plan, Watching watching) {
  std::vector<Level> levels;
  MemoryHistory history(plan.member_bytes());
  for (std::size_t index = 0; index < plan.steps().size(); ++index) {
    const Step& step = plan.steps()[index];
    if (step.only_watched && watching == Watching::no) continue;
    const std::vector<Phase>& phases = phases_of(step);
    if (phases.empty()) continue;
    const Footprint footprint = footprint_of(plan, step);
    int before = kNever;
    for (const ByteRange& range : footprint.reads)
      before = std::max(before, history.last_write(range.begin, range.end));
    for (const ByteRange& range : footprint.writes) before = std::max(before, history.last_use(range.begin, range.end));
    std::vector<int> at;  // levels of the phases
    if (phases.size() > 1 && phases[0].reads_only >= 0)
      at.push_back(ready_to_prepare(plan, step, phases[0].reads_only, history) + 1);
    while (at.size() < phases.size()) at.push_back(std::max(before, at.empty() ? kNever : at.back()) + 1);
    const int last = at.back();
    for (const ByteRange& range : footprint.reads) history.read(range.begin, range.end, last);
    for (const ByteRange& range : footprint.writes) history.write(range.begin, range.end, last);
    if (static_cast<int>(levels.size()) <= last) levels.resize(static_cast<std::size_t>(last) + 1);
    for (std::size_t phase = 0; phase < phases.size(); ++phase) {
      levels[static_cast<std::size_t>(at[phase])].push_back(
          {static_cast<int>(index), static_cast<int>(phase), phases[phase].tiles, tile_nanoseconds(plan, step, phase)});
    }
  }
  return levels;
}

}  // namespace norma
