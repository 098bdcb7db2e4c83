// Gives each part of a diagram a lane and a band. A value keeps its lane until its heir, the reader that continues it
// (the latest sum, so that skips run straight); every other reader gets a fork or taps the lane from the side. A part
// that reads a value twice is two readers of it.
#include <algorithm>
#include <compare>
#include <iterator>
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
      for (std::size_t o = 0; o < part(i).operands.size(); ++o)
        readers_[static_cast<std::size_t>(part(i).operands[o].part)].insert({i, static_cast<int>(o)});
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
  // An operand of a part, by its number there.
  struct Reader {
    int part, operand;
    auto operator<=>(const Reader&) const = default;
  };
  using Readers = std::set<Reader>;

  // A line that is still growing: what it carries, and from where.
  struct Open {
    int part;
    int from;              // band
    Readers readers = {};  // that have not been placed yet
  };

  int size() const { return static_cast<int>(layout_.parts.size()); }
  DiagramPart& part(int i) { return layout_.parts[static_cast<std::size_t>(i)]; }
  const Readers& readers(int i) const { return readers_[static_cast<std::size_t>(i)]; }
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

  Reader heir_of(int i) {
    Reader first{-1, 0}, last_sum{-1, 0};
    for (const Reader& reader : readers(i)) {
      const DiagramPart& p = part(reader.part);
      if (p.primary != reader.operand) continue;
      if (first.part < 0) first = reader;
      if (p.kind == Kind::add || p.kind == Kind::output) last_sum = reader;
    }
    return last_sum.part >= 0 ? last_sum : first;
  }

  void open(int lane, int i, int band, Readers waiting) {
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
      if (!readers(i).empty()) open(lane, i, band, readers(i));
      lane = std::max(lane + 1, kFirstStreamLane);
    }
  }

  // The lane on which a reader finds its value.
  int lane_for(const Reader& reader) const {
    const auto found = std::find_if(open_.begin(), open_.end(),
                                    [&](const auto& entry) { return entry.second.readers.contains(reader); });
    NORMA_ASSERT(found != open_.end());
    return found->first;
  }

  // Splits readers off a value's lane, each to a lane of its own. One band serves all forks of a value in a row.
  void fork(int lane, const std::vector<Reader>& to_readers) {
    Open& line = open_.at(lane);
    DiagramBand band{.kind = DiagramBand::Kind::fork, .from = lane};
    for (const Reader& reader : to_readers) {
      line.readers.erase(reader);
      const int target = free_lane(lane);
      band.to.push_back(target);
      open(target, line.part, top() + 1, {reader});
    }
    add_band(std::move(band));
  }

  // The forks that have to lie below a part: before a value's lane is taken over by its heir, those that read it later
  // get theirs; where the part itself reads the value again, one reading may tap the lane.
  void fork_before(int i) {
    for (int o = 0; o < static_cast<int>(part(i).operands.size()); ++o) {
      const Reader own{i, o};
      const int lane = lane_for(own);
      const Open& line = open_.at(lane);
      std::vector<Reader> leaving;
      if (heirs_[static_cast<std::size_t>(line.part)] == own) {
        std::copy_if(line.readers.begin(), line.readers.end(), std::back_inserter(leaving),
                     [&](const Reader& reader) { return reader != own; });
      } else if (std::any_of(line.readers.begin(), line.readers.end(), [&](const Reader& reader) {
                   return reader.part == i &&
                          (reader.operand < o || (reader.operand == part(i).primary && reader != own));
                 })) {
        leaving = {own};
      }
      if (!leaving.empty()) fork(lane, leaving);
    }
    const Reader primary{i, part(i).primary};
    const int lane = lane_for(primary);
    if (open_.at(lane).readers.size() > 1) fork(lane, {primary});
  }

  void place(int i) {
    fork_before(i);
    DiagramPart& p = part(i);
    p.lane = lane_for({i, p.primary});
    p.band = can_join(i) ? top() : add_band({});
    layout_.bands[static_cast<std::size_t>(p.band)].parts.push_back(i);
    for (int o = 0; o < static_cast<int>(p.operands.size()); ++o) {
      const int from = lane_for({i, o});
      if (o != p.primary)
        layout_.merges.push_back({p.band, from, p.lane, p.operands[static_cast<std::size_t>(o)].minus});
      Open& line = open_.at(from);
      line.readers.erase({i, o});
      if (line.readers.empty()) {
        layout_.lines.push_back({from, line.from, p.band});
        open_.erase(from);
      }
    }
    if (!readers(i).empty()) open(p.lane, i, p.band, readers(i));
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
      const int lane = lane_for({i, 0});
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
  std::vector<Readers> readers_;  // of each part
  std::vector<Reader> heirs_;
  std::map<int, Open> open_;  // by lane
};

}  // namespace

DiagramLayout place_parts(const DiagramParts& parts) { return Placer(parts).run(); }

}  // namespace norma
