#include "ops/cuda/convolution_im2col.h"

#include <algorithm>
#include <span>

namespace norma::cuda {
namespace {

constexpr int kMultiprocessors = 132;  // of an H100 or H200; a card that is asked would change the order of sums
constexpr int kChannels = 64;          // of a box
constexpr int kLeastLine = 32;         // pixels, from which on two positions more are little

std::int64_t parts_of(std::int64_t size, std::int64_t part) { return (size + part - 1) / part; }

// Positions that a gradient of weights is summed over: pixels, and two more for each line where boxes are of rows.
std::int64_t positions(const Im2colCall& call) {
  const int line = call.out_width + (call.box == Im2colBox::row ? 2 : 0);
  return std::int64_t{call.batch} * call.out_height * line;
}

struct TileCost {
  Im2colTile tile;
  int rows, columns;  // units of weights
  double step;        // nanoseconds of 64 along k
};

// As the tensor cores take them at 5 TFLOP/s a multiprocessor, or as copies take them where these are longer.
constexpr TileCost kWeightTiles[] = {
    {Im2colTile::narrow, 9, 64, 1000}, {Im2colTile::tall, 6, 128, 1300}, {Im2colTile::square, 3, 128, 700}};
constexpr TileCost kImageTiles[] = {{Im2colTile::narrow, 128, 64, 250},
                                    {Im2colTile::wide, 128, 256, 840},
                                    {Im2colTile::tall, 256, 128, 840},
                                    {Im2colTile::square, 128, 128, 480}};

// Few columns have a tile of their own, and the others are for more.
bool fits(const TileCost& cost, int columns) { return (cost.tile == Im2colTile::narrow) == (columns <= kChannels); }

struct Choice {
  Im2colTile tile = Im2colTile::narrow;
  int steps_per_split = 1;
  double time = 0;
};

// The best number of splits: rounds of blocks, each of which fills and empties its stages, and partial sums that are
// written and added at about 5 TB/s.
Choice best_splits(const Im2colCall& call, const TileCost& cost) {
  const std::int64_t units = parts_of(call.in, kChannels) * call.kernel * call.kernel;
  const std::int64_t tiles = parts_of(units, cost.rows) * parts_of(call.channels_out, cost.columns);
  const std::int64_t steps = positions(call) / kIm2colDepth;
  const auto weights = static_cast<double>(std::int64_t{call.kernel} * call.kernel * call.in * call.channels_out);
  Choice best{.tile = cost.tile};
  for (std::int64_t splits = 1; splits <= std::min<std::int64_t>(steps, 2 * kMultiprocessors); ++splits) {
    const std::int64_t each = parts_of(steps, splits);
    const auto rounds = static_cast<double>(parts_of(tiles * parts_of(steps, each), kMultiprocessors));
    const double fold = splits > 1 ? 2000 + static_cast<double>(splits) * weights * 8 / 5000 : 0;
    const double time = rounds * static_cast<double>(each + 4) * cost.step + fold;
    if (splits > 1 && time >= best.time) continue;
    best.steps_per_split = static_cast<int>(each), best.time = time;
  }
  return best;
}

// Which tile an image has does not change any sum.
Choice image_choice(ConvolutionPass pass, const Im2colCall& call, const TileCost& cost) {
  const bool data = pass == ConvolutionPass::data;
  const std::int64_t pixels =
      std::int64_t{call.batch} * (data ? call.height : call.out_height) * (data ? call.width : call.out_width);
  const std::int64_t tiles = parts_of(pixels, cost.rows) * parts_of(data ? call.in : call.channels_out, cost.columns);
  return {.tile = cost.tile, .time = static_cast<double>(parts_of(tiles, kMultiprocessors)) * cost.step};
}

void take(ConvolutionPass pass, Im2colCall& call, const Choice& choice) {
  call.tile = choice.tile;
  if (pass != ConvolutionPass::weights) return;
  call.steps_per_split = choice.steps_per_split;
  call.splits = static_cast<int>(parts_of(positions(call) / kIm2colDepth, choice.steps_per_split));
}

// The best tile of those that are wanted; false: none.
template <typename IsWanted>
bool choose_tile(ConvolutionPass pass, Im2colCall& call, const IsWanted& is_wanted) {
  const bool weights = pass == ConvolutionPass::weights;
  const int columns = pass == ConvolutionPass::data ? call.in : call.channels_out;
  bool found = false;
  Choice best;
  for (const TileCost& cost : weights ? std::span<const TileCost>(kWeightTiles) : std::span(kImageTiles)) {
    if (!fits(cost, columns) || !is_wanted(cost.tile)) continue;
    const Choice one = weights ? best_splits(call, cost) : image_choice(pass, call, cost);
    if (!found || one.time < best.time) best = one;
    found = true;
  }
  if (found) take(pass, call, best);
  return found;
}

bool serves(ConvolutionPass pass, const Im2colCall& call) {
  if (call.kernel != 1 && call.kernel != 3) return false;
  if (call.stride != 1 && call.stride != 2) return false;
  if (call.in < kChannels || call.channels_out < kChannels || call.in % 8 != 0 || call.channels_out % 8 != 0)
    return false;
  // Gradients by strided images come in classes, as for ConvolutionCall.
  return pass != ConvolutionPass::data || call.stride == 1 || (call.height % 2 == 0 && call.width % 2 == 0);
}

}  // namespace

bool plan_im2col(ConvolutionPass pass, Im2colCall& call, Im2colBox box) {
  if (!serves(pass, call)) return false;
  const bool few = call.in == kChannels && call.channels_out == kChannels;
  if (box == Im2colBox::row && !(few && call.kernel == 3 && call.stride == 1 && call.width >= kLeastLine)) return false;
  call.box = box;
  // A step that reaches beyond the last pixel of a member would read the next one's.
  if (pass == ConvolutionPass::weights && positions(call) % kIm2colDepth != 0) return false;
  return choose_tile(pass, call, [](Im2colTile) { return true; });
}

bool plan_im2col(ConvolutionPass pass, Im2colCall& call) {
  if (plan_im2col(pass, call, Im2colBox::row)) return true;
  // Nine boxes for 64 columns are more copying than products: those are faster from a part of the image.
  const bool mostly_copies = pass == ConvolutionPass::weights && call.kernel == 3 && call.stride == 1 &&
                             call.in == kChannels && call.channels_out == kChannels;
  return !mostly_copies && plan_im2col(pass, call, Im2colBox::tap);
}

bool plan_im2col(ConvolutionPass pass, Im2colCall& call, Im2colTile tile) {
  return plan_im2col(pass, call) && choose_tile(pass, call, [=](Im2colTile one) { return one == tile; });
}

}  // namespace norma::cuda
