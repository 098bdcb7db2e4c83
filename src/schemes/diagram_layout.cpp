// Gives each part of a diagram a lane and a band. A value keeps its lane until its heir, the reader that continues it
// (the latest sum, so that skips run straight); every other reader gets a fork or taps the lane from the side.
#include <algorithm>
#include <map>
#include <set>

#include "norma/core/error.h"
#include "schemes/diagram_parts.h"

namespace norma {
namespace {

using Kind = DiagramPart::Kind;

constexpr int kFirstStreamLane = 1 << 20;  // further streams stand to the right of all branches; renumbered at the end

class Placer {
 public:
  explicit Placer(const DiagramParts& given) : given_(given) {
    layout_.parts = given.parts;
    readers_.resize(layout_.parts.size());
    for (int i = 0; i < size(); ++i) {
      choose_primary(i);
      for (const DiagramPart::Operand& operand : part(i).operands)
        readers_[static_cast<std::size_t>(operand.part)].push_back(i);
    }
    for (int i = 0; i < size(); ++i) heirs_.push_back(heir_of(i));
  }

  DiagramLayout run() {
    place_inputs();
    int section = -1;
    for (int i = 0; i < size(); ++i) {
      if (part(i).kind == Kind::input || part(i).kind == Kind::output) continue;
      if (part(i).section != section) {
        section = part(i).section;
        if (given_.sections.size() > 1) add_band({.kind = DiagramBand::Kind::divider, .section = section});
      }
      place(i);
    }
    place_outputs();
    renumber_lanes();
    return std::move(layout_);
  }

 private:
  // A line that is still growing: what it carries, and from where.
  struct Open {
    int part;
    int from;                    // band
    std::set<int> readers = {};  // that have not been placed yet
  };

  int size() const { return static_cast<int>(layout_.parts.size()); }
  DiagramPart& part(int i) { return layout_.parts[static_cast<std::size_t>(i)]; }
  const std::vector<int>& readers(int i) const { return readers_[static_cast<std::size_t>(i)]; }
  int top() const { return static_cast<int>(layout_.bands.size()) - 1; }

  int add_band(DiagramBand band) {
    layout_.bands.push_back(std::move(band));
    return top();
  }

  // Whether a value is a branch's output rather than a stream: no sum lies between it and the branch.
  bool is_branch_output(int i) {
    for (;;) {
      const DiagramPart& p = part(i);
      if (p.tone == DiagramPart::Tone::branch) return true;
      if (p.kind == Kind::input || p.kind == Kind::add || p.operands.empty()) return false;
      i = p.operands[static_cast<std::size_t>(p.primary)].part;
    }
  }

  // A sum continues the latest stream among its operands.
  void choose_primary(int i) {
    DiagramPart& p = part(i);
    if (p.kind != Kind::add) return;
    int best = -1;
    for (std::size_t o = 0; o < p.operands.size(); ++o) {
      if (p.operands[o].minus || is_branch_output(p.operands[o].part)) continue;
      if (best < 0 || p.operands[o].part > p.operands[static_cast<std::size_t>(best)].part) best = static_cast<int>(o);
    }
    p.primary = std::max(best, 0);
  }

  bool continues(int reader, int i) {
    const DiagramPart& p = part(reader);
    return p.operands[static_cast<std::size_t>(p.primary)].part == i;
  }

  int heir_of(int i) {
    int first = -1, last_sum = -1;
    for (const int reader : readers(i)) {
      if (!continues(reader, i)) continue;
      if (first < 0) first = reader;
      if (part(reader).kind == Kind::add || part(reader).kind == Kind::output) last_sum = reader;
    }
    return last_sum >= 0 ? last_sum : first;
  }

  void open(int lane, int i, int band, std::set<int> waiting) {
    open_[lane] = {.part = i, .from = band, .readers = std::move(waiting)};
  }

  int free_lane(int right_of) const {
    int lane = right_of >= kFirstStreamLane ? 1 : right_of + 1;
    while (open_.contains(lane)) ++lane;
    return lane;
  }

  void place_inputs() {
    const int band = add_band({});
    int lane = 0;
    for (int i = 0; i < size(); ++i) {
      if (part(i).kind != Kind::input) continue;
      part(i).lane = lane;
      part(i).band = band;
      layout_.bands[0].parts.push_back(i);
      if (!readers(i).empty()) open(lane, i, band, {readers(i).begin(), readers(i).end()});
      lane = std::max(lane + 1, kFirstStreamLane);
    }
  }

  // The lane on which a reader finds a value.
  int lane_for(int reader, int value) const {
    const auto found = std::find_if(open_.begin(), open_.end(), [&](const auto& entry) {
      return entry.second.part == value && entry.second.readers.contains(reader);
    });
    NORMA_ASSERT(found != open_.end());
    return found->first;
  }

  // Splits readers off a value's lane, each to a lane of its own. One band serves all forks of a value in a row.
  void fork(int lane, const std::vector<int>& to_readers) {
    Open& line = open_.at(lane);
    DiagramBand band{.kind = DiagramBand::Kind::fork, .from = lane};
    for (const int reader : to_readers) {
      line.readers.erase(reader);
      const int target = free_lane(lane);
      band.to.push_back(target);
      open(target, line.part, top() + 1, {reader});
    }
    add_band(std::move(band));
  }

  void place(int i) {
    DiagramPart& p = part(i);
    // Before a value's lane is taken over by its heir, those that read it later get their forks.
    for (const DiagramPart::Operand& operand : p.operands) {
      const int lane = lane_for(i, operand.part);
      if (heirs_[static_cast<std::size_t>(operand.part)] != i) continue;
      std::vector<int> others;
      for (const int reader : open_.at(lane).readers) {
        if (reader != i) others.push_back(reader);
      }
      if (!others.empty()) fork(lane, others);
    }
    const int value = p.operands[static_cast<std::size_t>(p.primary)].part;
    int lane = lane_for(i, value);
    if (open_.at(lane).readers.size() > 1 || !ends_here(lane, i)) {
      fork(lane, {i});
      lane = lane_for(i, value);
    }
    p.lane = lane;
    p.band = can_join(i) ? top() : add_band({});
    layout_.bands[static_cast<std::size_t>(p.band)].parts.push_back(i);
    for (std::size_t o = 0; o < p.operands.size(); ++o) {
      const int operand = p.operands[o].part;
      if (static_cast<int>(o) == p.primary) {
        layout_.lines.push_back({lane, open_.at(lane).from, p.band});
        open_.erase(lane);
        continue;
      }
      if (static_cast<int>(o) != p.primary && operand == value) continue;  // x + x: drawn once
      const int from = lane_for(i, operand);
      layout_.merges.push_back({p.band, from, lane, p.operands[o].minus});
      Open& line = open_.at(from);
      line.readers.erase(i);
      if (line.readers.empty()) {
        layout_.lines.push_back({from, line.from, p.band});
        open_.erase(from);
      }
    }
    if (!readers(i).empty()) open(lane, i, p.band, {readers(i).begin(), readers(i).end()});
  }

  // Whether nothing else will read this lane above the reader.
  bool ends_here(int lane, int reader) const {
    const Open& line = open_.at(lane);
    return line.readers.size() == 1 && line.readers.contains(reader);
  }

  // Boxes whose operands were there before the last band was opened stand side by side.
  bool can_join(int i) {
    const DiagramPart& p = part(i);
    const DiagramBand& last = layout_.bands.back();
    if (p.kind != Kind::box || p.operands.size() != 1 || last.kind != DiagramBand::Kind::parts || top() == 0)
      return false;
    return open_.at(p.lane).from < top() && std::all_of(last.parts.begin(), last.parts.end(), [&](int other) {
             return part(other).kind == Kind::box && part(other).operands.size() == 1 && part(other).lane != p.lane;
           });
  }

  void place_outputs() {
    const int band = add_band({});
    for (int i = 0; i < size(); ++i) {
      if (part(i).kind != Kind::output) continue;
      const int lane = lane_for(i, part(i).operands[0].part);
      part(i).lane = lane;
      part(i).band = band;
      layout_.bands.back().parts.push_back(i);
      layout_.lines.push_back({lane, open_.at(lane).from, band});
    }
  }

  void renumber_lanes() {
    std::map<int, int> numbers;
    for (const DiagramPart& p : layout_.parts) numbers[p.lane] = 0;
    for (const DiagramLine& line : layout_.lines) numbers[line.lane] = 0;
    for (auto& [lane, number] : numbers) number = layout_.lanes++;
    for (DiagramPart& p : layout_.parts) p.lane = numbers.at(p.lane);
    for (DiagramLine& line : layout_.lines) line.lane = numbers.at(line.lane);
    for (DiagramMerge& merge : layout_.merges) {
      merge.from = numbers.at(merge.from);
      merge.to = numbers.at(merge.to);
    }
    for (DiagramBand& band : layout_.bands) {
      if (band.kind != DiagramBand::Kind::fork) continue;
      band.from = numbers.at(band.from);
      for (int& lane : band.to) lane = numbers.at(lane);
    }
  }

  const DiagramParts& given_;
  DiagramLayout layout_;
  std::vector<std::vector<int>> readers_;
  std::vector<int> heirs_;
  std::map<int, Open> open_;  // by lane
};

}  // namespace

DiagramLayout place_parts(const DiagramParts& parts) { return Placer(parts).run(); }

}  // namespace norma
