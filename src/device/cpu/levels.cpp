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

bool named_elsewhere(const std::vector<Phase>& phases, std::size_t phase, int output) {
  for (std::size_t other = 0; other < phases.size(); ++other) {
    const std::optional<Touched>& touches = phases[other].touches;
    if (other != phase && touches && std::ranges::find(touches->outputs, output) != touches->outputs.end()) return true;
  }
  return false;
}

Footprint footprint_of(const Plan& plan, const Step& step, std::size_t phase) {
  const Node& node = plan.nodes()[static_cast<std::size_t>(step.node)];
  const std::vector<Phase>& phases = phases_of(step);
  Footprint footprint;
  const auto add = [](std::vector<ByteRange>& ranges, std::int64_t offset, std::int64_t bytes) {
    if (offset >= 0 && bytes > 0) ranges.push_back({offset, offset + bytes});
  };
  const auto bytes_of = [&](int value) { return plan.values()[static_cast<std::size_t>(value)].type.bytes(); };
  const auto reads = [&](int in) {
    const auto at = static_cast<std::size_t>(in);
    add(footprint.reads, step.offsets[at], bytes_of(node.inputs[at]));
  };
  const auto writes = [&](int out) {
    const auto at = static_cast<std::size_t>(out);
    add(footprint.writes, step.offsets[node.inputs.size() + at], bytes_of(node.outputs[at]));
  };
  if (const std::optional<Touched>& touches = phases[phase].touches) {
    for (const int in : touches->inputs) reads(in);
    for (const int out : touches->outputs) writes(out);
  } else {
    for (int in = 0; in < static_cast<int>(node.inputs.size()); ++in) reads(in);
    for (int out = 0; out < static_cast<int>(node.outputs.size()); ++out) {
      if (!named_elsewhere(phases, phase, out)) writes(out);
    }
  }
  add(footprint.writes, step.scratch, step.kernel->needs.scratch_bytes);
  return footprint;
}

std::int64_t bytes_of(const Footprint& footprint) {
  std::int64_t bytes = 0;
  for (const auto* ranges : {&footprint.reads, &footprint.writes}) {
    for (const ByteRange& range : *ranges) bytes += range.end - range.begin;
  }
  return bytes;
}

// Of one tile, from the op's own count of work: a core does some 100 operations or moves 20 bytes in a nanosecond, and
// calling a kernel costs a little. A phase that says what it touches goes through that once; of the others, what
// follows the first mostly adds up what that left.
double tile_nanoseconds(const Plan& plan, const Step& step, std::size_t phase, const Footprint& footprint) {
  const std::vector<Phase>& phases = phases_of(step);
  const auto tiles = static_cast<double>(phases[phase].tiles);
  if (phases[phase].touches && phases[phase].share == 0)
    return 150 + static_cast<double>(bytes_of(footprint)) / 20 / tiles;
  const Node& node = plan.nodes()[static_cast<std::size_t>(step.node)];
  std::vector<Type> in, out;
  for (const int id : node.inputs) in.push_back(plan.values()[static_cast<std::size_t>(id)].type);
  for (const int id : node.outputs) out.push_back(plan.values()[static_cast<std::size_t>(id)].type);
  const Cost cost = node.op->cost(in, out);
  const auto main = std::ranges::count_if(phases, [](const Phase& one) { return !one.touches; });
  const double usual = main == 1 ? 1 : phase == 0 ? 0.7 : 0.3 / static_cast<double>(main - 1);
  const double share = phases[phase].share > 0 ? phases[phase].share : usual;
  return 150 + share * (cost.flops / 100 + cost.bytes / 20) / tiles;
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
    int level = kNever;  // of the phase before
    for (std::size_t phase = 0; phase < phases.size(); ++phase) {
      const Footprint footprint = footprint_of(plan, step, phase);
      for (const ByteRange& range : footprint.reads)
        level = std::max(level, history.last_write(range.begin, range.end));
      for (const ByteRange& range : footprint.writes) level = std::max(level, history.last_use(range.begin, range.end));
      ++level;
      for (const ByteRange& range : footprint.reads) history.read(range.begin, range.end, level);
      for (const ByteRange& range : footprint.writes) history.write(range.begin, range.end, level);
      if (static_cast<int>(levels.size()) <= level) levels.resize(static_cast<std::size_t>(level) + 1);
      levels[static_cast<std::size_t>(level)].push_back({static_cast<int>(index), static_cast<int>(phase),
                                                         phases[phase].tiles,
                                                         tile_nanoseconds(plan, step, phase, footprint)});
    }
  }
  return levels;
}

}  // namespace norma
