// What the rows of each segment come to: a block to a segment and 32 of its channels. It finds its rows by bisection;
// each of its warps takes a part of them in order, and the parts are put together in order.
#include "norma/ops/segments.h"

#include "ops/cuda/edges.cuh"

namespace norma {
namespace {

constexpr int kSegmentWarps = 8;

struct SegmentCall {
  cuda::Members members = {};
  std::int64_t x = 0, ids = 0, y = 0, picks = cuda::kAbsent;
  std::int64_t rows = 0, width = 0;
  Segmented kind = Segmented::sum;
};

__global__ void __launch_bounds__(cuda::kWarp* kSegmentWarps) segment_kernel(const __grid_constant__ SegmentCall call) {
  __shared__ float values[kSegmentWarps][cuda::kWarp];
  __shared__ std::int32_t places[kSegmentWarps][cuda::kWarp];
  if (cuda::skipped(call.members, blockIdx.z)) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.z);
  const int lane = static_cast<int>(threadIdx.x), warp = static_cast<int>(threadIdx.y);
  const std::int64_t segment = blockIdx.x, column = std::int64_t{blockIdx.y} * cuda::kWarp + lane;
  const bool has = column < call.width, largest = call.kind == Segmented::max;
  const std::int32_t* const ids = cuda::at<const std::int32_t>(member, call.ids);
  const std::int64_t begin = cuda::first_of(ids, call.rows, segment), end = cuda::first_of(ids, call.rows, segment + 1);
  const std::int64_t part = (end - begin + kSegmentWarps - 1) / kSegmentWarps;
  const std::int64_t mine = begin + warp * part, behind = min(mine + part, end);
  const float* const x = cuda::at<const float>(member, call.x) + (has ? column : 0);
  float value = 0.0f;
  auto pick = static_cast<std::int32_t>(call.rows);
#pragma unroll 4
  for (std::int64_t row = mine; row < behind; ++row) {
    const float one = x[row * call.width];
    if (largest) {
      cuda::keep_larger(one, static_cast<std::int32_t>(row), row == mine, value, pick);
    } else {
      value += one;
    }
  }
  values[warp][lane] = value;
  places[warp][lane] = pick;
  __syncthreads();
  if (warp != 0 || !has) return;
  for (int other = 1; other < kSegmentWarps && begin + other * part < end; ++other) {
    if (largest) {
      cuda::keep_larger(values[other][lane], places[other][lane], false, value, pick);
    } else {
      value += values[other][lane];
    }
  }
  if (call.kind == Segmented::mean && end > begin) value *= 1.0f / static_cast<float>(end - begin);
  cuda::at<float>(member, call.y)[segment * call.width + column] = value;
  if (call.picks >= 0) cuda::at<std::int32_t>(member, call.picks)[segment * call.width + column] = pick;
}

int run_segments(const SegmentCall& told, std::int64_t segments, cuda::Stream stream) {
  const dim3 grid(static_cast<unsigned>(segments), cuda::blocks_for(told.width, cuda::kWarp),
                  static_cast<unsigned>(told.members.count));
  segment_kernel<<<grid, dim3(cuda::kWarp, kSegmentWarps), 0, stream>>>(told);
  return cuda::launched();
}

}  // namespace

cuda::Program cuda_kernel(const SegmentReduce& op, Types in, Types out) {
  const std::int64_t rows = in[0].shape[0];
  const SegmentCall shape{.rows = rows, .width = in[0].shape.elements() / rows, .kind = op.kind()};
  const bool places = out.size() > 1;
  return {.launch = [=, segments = op.segments()](const cuda::Call& call) {
    SegmentCall told = shape;
    told.members = call.members;
    told.x = call.in(0), told.ids = call.in(1), told.y = call.out(0);
    if (places) told.picks = call.out(1);
    return run_segments(told, segments, call.stream);
  }};
}

}  // namespace norma
