// Buffers with overlapping lifetimes never share a byte, and little is wasted.
#include "graph/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "norma/core/arena.h"
#include "norma/core/random.h"

namespace norma {
namespace {

void expect_disjoint(const std::vector<Buffer>& buffers, std::int64_t bytes) {
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const Buffer& a = buffers[i];
    ASSERT_GE(a.offset, 0);
    ASSERT_LE(a.offset + a.bytes, bytes);
    for (std::size_t j = 0; j < i; ++j) {
      const Buffer& b = buffers[j];
      const bool same_time = a.first <= b.last && b.first <= a.last;
      const bool same_place = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
      ASSERT_FALSE(same_time && same_place) << "buffers " << i << " and " << j;
    }
  }
}

TEST(Layout, RandomLifetimesNeverOverlap) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const RandomStream random(seed, "layout");
    std::uint64_t draw = 0;
    const int steps = 1 + static_cast<int>(random.below(draw++, 80));
    std::vector<Buffer> buffers(1 + random.below(draw++, 200));
    for (Buffer& buffer : buffers) {
      buffer.bytes = align_up(1 + static_cast<std::int64_t>(random.below(draw++, 5000)));
      buffer.first = static_cast<int>(random.below(draw++, static_cast<std::uint64_t>(steps)));
      // The last step may be `steps`: an output, read after the run.
      buffer.last =
          buffer.first + static_cast<int>(random.below(draw++, static_cast<std::uint64_t>(steps - buffer.first + 1)));
    }
    const LayoutResult result = lay_out(buffers, steps);
    expect_disjoint(buffers, result.bytes);
    EXPECT_GE(result.bytes, result.peak_live_bytes);
    // Greedy placement of arbitrary lifetimes is near the bound, not at it.
    EXPECT_LE(static_cast<double>(result.bytes), 1.6 * static_cast<double>(result.peak_live_bytes)) << "seed " << seed;
  }
}

// Lifetimes of a transformer step: what a layer saves lives from its forward to its backward step, last in first out;
// what it needs for a moment lives for one or two steps.
std::vector<Buffer> transformer_lifetimes(int layers, std::int64_t row) {
  constexpr int kForward = 6, kBackward = 12;  // steps of a layer
  const int turn = layers * kForward;
  const int steps = turn + layers * kBackward;
  std::vector<Buffer> buffers;
  for (int layer = 0; layer < layers; ++layer) {
    const int forward = layer * kForward, backward = steps - (layer + 1) * kBackward;
    const auto saved = [&](int at, int until, std::int64_t width) {
      buffers.push_back({.bytes = align_up(width * row), .first = forward + at, .last = backward + until});
    };
    const auto brief = [&](int at, int length, std::int64_t width) {
      buffers.push_back({.bytes = align_up(width * row), .first = at, .last = at + length});
    };
    saved(0, 11, 4);  // stream after norm
    saved(1, 8, 12);  // q, k, v
    saved(2, 6, 4);   // attention output
    saved(3, 5, 4);   // second norm
    saved(4, 2, 16);  // hidden, before the activation
    brief(forward + 4, 1, 16);
    brief(forward + 3, 2, 4);
    for (int step = 0; step + 1 < kBackward; ++step) brief(backward + step, 1, step % 3 == 0 ? 16 : 4);
    brief(backward + 1, 10, 4);
  }
  return buffers;
}

TEST(Layout, TransformerLifetimesFitCloseToTheBound) {
  for (const int layers : {2, 6, 24, 100}) {
    for (const std::int64_t row : {256, 1000, 32768}) {
      std::vector<Buffer> buffers = transformer_lifetimes(layers, row);
      const LayoutResult result = lay_out(buffers, layers * 18);
      expect_disjoint(buffers, result.bytes);
      EXPECT_LE(static_cast<double>(result.bytes), 1.1 * static_cast<double>(result.peak_live_bytes))
          << layers << " layers, " << row << " bytes per unit of width";
    }
  }
}

TEST(Layout, NothingToPlace) {
  std::vector<Buffer> none;
  EXPECT_EQ(lay_out(none, 0).bytes, 0);
}

}  // namespace
}  // namespace norma
