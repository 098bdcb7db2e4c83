// Convolutions on the CPU: a tile is a block of images. Weights are packed once, in a phase before, and the gradient of
// a weight is summed over blocks in a fixed order, so that bits do not depend on the number of threads.
#include <algorithm>

#include "device/cpu/convolution.h"
#include "norma/core/arena.h"
#include "norma/device/cpu/kernel.h"
#include "ops/convolution_sizes.h"

namespace norma {
namespace {

using Pass = ConvolutionShape::Pass;

// One compiled convolution for every block of images; the last may be shorter.
struct ImageBlocks {
  Tiling blocks;
  std::shared_ptr<const Convolution> full, last;

  ImageBlocks(ConvolutionShape shape, Pass pass, std::int64_t least) : blocks(shape.batch, least) {
    shape.pass = pass;
    shape.batch = std::min(blocks.block, blocks.total);
    full = make_convolution(shape);
    shape.batch = blocks.end(blocks.tiles - 1) - blocks.begin(blocks.tiles - 1);
    last = make_convolution(shape);
  }
  // Both must read weights of one layout.
  bool alike() const { return full->packs_like(*last); }
  const Convolution& at(std::int64_t tile) const { return tile + 1 == blocks.tiles ? *last : *full; }
  std::int64_t worker_bytes() const { return std::max(full->worker_bytes(), last->worker_bytes()); }
};

std::int64_t images_for(double flops_an_image) {
  constexpr double kFlopsPerTile = 1 << 22;  // some 50 microseconds on one core
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(kFlopsPerTile / flops_an_image));
}

ImageBlocks image_blocks(const ConvolutionSizes& sizes, Pass pass, std::int64_t least) {
  const ImageBlocks cut(sizes.shape, pass, least);
  return cut.alike() ? cut : ImageBlocks(sizes.shape, pass, sizes.shape.batch);
}

// x or dy with a weight: the same but for sizes.
CpuKernel with_weight(const ConvolutionSizes& sizes, Pass pass) {
  const ConvolutionShape& s = sizes.shape;
  const ImageBlocks images = image_blocks(sizes, pass, images_for(sizes.flops() / static_cast<double>(s.batch)));
  const std::int64_t x = s.height * s.width * s.in, y = s.out_height * s.out_width * s.out;
  const std::int64_t from = pass == Pass::forward ? x : y, to = pass == Pass::forward ? y : x;
  const std::int64_t packed = images.full->packed_floats();
  CpuKernel kernel{.scratch_bytes = align_up(packed * 4), .worker_bytes = images.worker_bytes()};
  const auto pack = [=](const Call& call, std::int64_t) {
    images.full->pack(call.in<float>(1), call.shared<float>(), call.worker_scratch);
  };
  const auto run = [=](const Call& call, std::int64_t tile) {
    const std::int64_t at = images.blocks.begin(tile);
    images.at(tile).run(call.in<float>(0) + at * from, call.shared<float>(), call.out<float>(0) + at * to,
                        call.worker_scratch);
  };
  const double share = std::min(0.5, static_cast<double>(packed) * 8 / sizes.flops());
  kernel.phases.push_back({.tiles = 1, .run = pack, .share = share, .reads_only = 1});
  kernel.phases.push_back({.tiles = images.blocks.tiles, .run = run, .share = 1 - share});
  return kernel;
}

}  // namespace

CpuKernel cpu_kernel(const Conv2d& op, Types in, Types) {
  return with_weight({op.options(), in[0].shape, in[1].shape}, Pass::forward);
}

CpuKernel cpu_kernel(const Conv2dData& op, Types in, Types out) {
  return with_weight({op.options(), out[0].shape, in[1].shape}, Pass::data);
}

CpuKernel cpu_kernel(const Conv2dWeights& op, Types in, Types out) {
  constexpr std::int64_t kMostBlocks = 8;  // each has a weight of its own in scratch
  const ConvolutionSizes sizes(op.options(), in[0].shape, out[0].shape);
  const ConvolutionShape& s = sizes.shape;
  const std::int64_t least =
      std::max(images_for(sizes.flops() / static_cast<double>(s.batch)), (s.batch + kMostBlocks - 1) / kMostBlocks);
  const ImageBlocks images = image_blocks(sizes, Pass::weights, least);
  const std::int64_t x = s.height * s.width * s.in, y = s.out_height * s.out_width * s.out;
  const std::int64_t packed = images.full->packed_floats(), apart = align_up(packed * 4) / 4;
  const std::int64_t blocks = images.blocks.tiles;
  CpuKernel kernel{.scratch_bytes = apart * 4 * blocks, .worker_bytes = images.worker_bytes()};
  const auto part = [=](const Call& call, std::int64_t tile) {
    const std::int64_t at = images.blocks.begin(tile);
    images.at(tile).run(call.in<float>(0) + at * x, call.in<float>(1) + at * y, call.shared<float>() + tile * apart,
                        call.worker_scratch);
  };
  const auto gather = [=](const Call& call, std::int64_t) {
    float* const sum = call.shared<float>();
    for (std::int64_t tile = 1; tile < blocks; ++tile) {
      const float* const more = sum + tile * apart;
      for (std::int64_t i = 0; i < packed; ++i) sum[i] += more[i];
    }
    images.full->unpack(sum, call.out<float>(0), call.worker_scratch);
  };
  kernel.phases.push_back({.tiles = blocks, .run = part});
  kernel.phases.push_back({.tiles = 1, .run = gather});
  return kernel;
}

}  // namespace norma
