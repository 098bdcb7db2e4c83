#include "graph/layout.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "norma/core/arena.h"
#include "norma/core/error.h"

namespace norma {
namespace {

std::int64_t peak_of(const std::vector<Buffer>& buffers, int steps) {
  std::vector<std::int64_t> change(static_cast<std::size_t>(steps) + 2, 0);
  for (const Buffer& buffer : buffers) {
    const std::int64_t bytes = buffer.needed > 0 ? buffer.needed : buffer.bytes;
    change[static_cast<std::size_t>(buffer.first)] += bytes;
    change[static_cast<std::size_t>(buffer.last) + 1] -= bytes;
  }
  std::int64_t live = 0, peak = 0;
  for (const std::int64_t delta : change) peak = std::max(peak, live += delta);
  return peak;
}

// Free memory, by place and by size: a deep stack leaves thousands of gaps.
class Gaps {
 public:
  // A place in the tightest gap that holds so many bytes, of equal ones the first; none: no gap does.
  std::optional<std::int64_t> take(std::int64_t bytes) {
    const auto best = by_size_.lower_bound({bytes, std::numeric_limits<std::int64_t>::min()});
    if (best == by_size_.end()) return std::nullopt;
    const auto [size, offset] = *best;
    remove(by_offset_.find(offset));
    if (size > bytes) add(offset + bytes, size - bytes);
    return offset;
  }

  // Where memory grows: `end`, or the beginning of a gap that reaches it.
  std::int64_t take_tail(std::int64_t end) {
    if (by_offset_.empty()) return end;
    const auto tail = std::prev(by_offset_.end());
    if (tail->first + tail->second != end) return end;
    const std::int64_t offset = tail->first;
    remove(tail);
    return offset;
  }

  void give_back(std::int64_t offset, std::int64_t bytes) {
    const auto next = by_offset_.lower_bound(offset);
    if (next != by_offset_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == offset) {
        offset = before->first;
        bytes += before->second;
        remove(before);
      }
    }
    if (next != by_offset_.end() && offset + bytes == next->first) {
      bytes += next->second;
      remove(next);
    }
    add(offset, bytes);
  }

 private:
  void add(std::int64_t offset, std::int64_t bytes) {
    by_offset_.emplace(offset, bytes);
    by_size_.emplace(bytes, offset);
  }
  void remove(std::map<std::int64_t, std::int64_t>::iterator gap) {
    by_size_.erase({gap->second, gap->first});
    by_offset_.erase(gap);
  }

  std::map<std::int64_t, std::int64_t> by_offset_;           // offset -> bytes, never adjacent
  std::set<std::pair<std::int64_t, std::int64_t>> by_size_;  // bytes, offset
};

// In order of time: each buffer takes the tightest free gap when it is born and returns it when it dies.
std::int64_t place_by_time(std::vector<Buffer>& buffers, int steps) {
  std::vector<std::vector<std::size_t>> born(static_cast<std::size_t>(steps) + 1),
      dies(static_cast<std::size_t>(steps) + 1);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    born[static_cast<std::size_t>(buffers[i].first)].push_back(i);
    dies[static_cast<std::size_t>(buffers[i].last)].push_back(i);
  }
  Gaps gaps;
  std::int64_t end = 0;
  for (std::size_t step = 0; step < born.size(); ++step) {
    std::sort(born[step].begin(), born[step].end(), [&](auto a, auto b) {
      return buffers[a].bytes != buffers[b].bytes ? buffers[a].bytes > buffers[b].bytes : a < b;
    });
    for (const std::size_t i : born[step]) {
      Buffer& buffer = buffers[i];
      if (const std::optional<std::int64_t> offset = gaps.take(buffer.bytes)) {
        buffer.offset = *offset;
      } else {
        buffer.offset = gaps.take_tail(end);
        end = buffer.offset + buffer.bytes;
      }
    }
    for (const std::size_t i : dies[step]) gaps.give_back(buffers[i].offset, buffers[i].bytes);
  }
  return end;
}

// Largest first: each buffer takes the tightest gap between the placed buffers that live at the same time.
std::int64_t place_by_size(std::vector<Buffer>& buffers) {
  std::vector<std::size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](auto a, auto b) {
    return buffers[a].bytes != buffers[b].bytes ? buffers[a].bytes > buffers[b].bytes : a < b;
  });
  std::vector<Buffer> placed;  // sorted by offset
  placed.reserve(buffers.size());
  std::int64_t end = 0;
  for (const std::size_t i : order) {
    Buffer& buffer = buffers[i];
    std::int64_t cursor = 0, best = -1, best_gap = std::numeric_limits<std::int64_t>::max();
    for (const Buffer& other : placed) {
      if (other.last < buffer.first || other.first > buffer.last) continue;
      const std::int64_t gap = other.offset - cursor;
      if (gap >= buffer.bytes && gap < best_gap) {
        best = cursor;
        best_gap = gap;
      }
      cursor = std::max(cursor, other.offset + other.bytes);
    }
    buffer.offset = best >= 0 ? best : cursor;
    end = std::max(end, buffer.offset + buffer.bytes);
    const auto at = std::upper_bound(placed.begin(), placed.end(), buffer.offset,
                                     [](std::int64_t offset, const Buffer& other) { return offset < other.offset; });
    placed.insert(at, buffer);
  }
  return end;
}

constexpr std::size_t kMostForPlaceBySize = 12000;  // it is quadratic: about 0.1 s here

}  // namespace

LayoutResult lay_out(std::vector<Buffer>& buffers, int steps) {
  LayoutResult result{.bytes = 0, .peak_live_bytes = peak_of(buffers, steps)};
  result.bytes = place_by_time(buffers, steps);
  const bool loose = static_cast<double>(result.bytes) > 1.03 * static_cast<double>(result.peak_live_bytes);
  if (loose && buffers.size() <= kMostForPlaceBySize) {
    std::vector<Buffer> other = buffers;
    const std::int64_t bytes = place_by_size(other);
    if (bytes < result.bytes) {
      buffers = std::move(other);
      result.bytes = bytes;
    }
  }
  return result;
}

}  // namespace norma
