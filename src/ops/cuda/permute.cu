// The axes of a tensor in another order, for any dtype. Where the last axis stays last, whole words of its rows move;
// where it does not, tiles go through shared memory so that both sides are walked along their rows.
#include "norma/ops/views.h"
#include "ops/cuda/walk.cuh"

namespace norma {
namespace {

using PermuteWalk = cuda::Walk<1>;

struct PermuteCall {
  cuda::Members members = {};
  std::int64_t in = 0, out = 0, elements = 0;
  PermuteWalk walk = {};
};

template <typename Word>
__global__ void __launch_bounds__(cuda::kThreads) permute_kernel(const __grid_constant__ PermuteCall call) {
  const std::int64_t i = std::int64_t{blockIdx.x} * cuda::kThreads + threadIdx.x;
  if (cuda::skipped(call.members, blockIdx.y) || i >= call.elements) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  std::int64_t from[1] = {};
  call.walk.find<1>(i, from);
  cuda::at<Word>(member, call.out)[i] = cuda::at<const Word>(member, call.in)[from[0]];
}

constexpr int kTile = 32, kTileRows = 8;

// a: the axis along which x is contiguous; b: the one along which y is. The others are `walk`, with y as input 1.
struct TransposeCall {
  cuda::Members members = {};
  std::int64_t in = 0, out = 0;
  std::int64_t a = 0, b = 0;              // sizes
  std::int64_t in_stride = 0;             // of b in x
  std::int64_t out_stride = 0;            // of a in y
  std::int64_t a_tiles = 0, b_tiles = 0;  // blocks: the others, tiles of a, tiles of b
  cuda::Walk<2> walk = {};
};

template <typename Word>
__global__ void __launch_bounds__(kTile* kTileRows) transpose_kernel(const __grid_constant__ TransposeCall call) {
  __shared__ Word tile[kTile][kTile + 1];
  if (cuda::skipped(call.members, blockIdx.y)) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const std::int64_t block = blockIdx.x, above = cuda::quotient(block, call.b_tiles);
  const std::int64_t other = cuda::quotient(above, call.a_tiles);
  const std::int64_t a0 = (above - other * call.a_tiles) * kTile, b0 = (block - above * call.b_tiles) * kTile;
  std::int64_t from[2] = {};
  call.walk.find<1>(other, from);
  const Word* const x = cuda::at<const Word>(member, call.in) + from[0];
  Word* const y = cuda::at<Word>(member, call.out) + from[1];
  const int lane = static_cast<int>(threadIdx.x);
  for (int row = static_cast<int>(threadIdx.y); row < kTile; row += kTileRows) {
    if (a0 + lane < call.a && b0 + row < call.b) tile[row][lane] = x[a0 + lane + (b0 + row) * call.in_stride];
  }
  __syncthreads();
  for (int row = static_cast<int>(threadIdx.y); row < kTile; row += kTileRows) {
    if (a0 + row < call.a && b0 + lane < call.b) y[(a0 + row) * call.out_stride + b0 + lane] = tile[lane][row];
  }
}

template <typename Word>
int permute_launch(const cuda::Call& call, PermuteWalk walk, int words) {  // elements to a Word
  for (int axis = 0; axis < walk.axes - 1; ++axis) walk.stride[0][axis] /= words;
  walk.size[walk.axes - 1] /= words;
  const PermuteCall told{call.members, call.in(0), call.out(0), walk.elements(), walk};
  const dim3 grid(cuda::blocks_for(told.elements, cuda::kThreads), static_cast<unsigned>(call.members.count));
  permute_kernel<Word><<<grid, cuda::kThreads, 0, call.stream>>>(told);
  return cuda::launched();
}

template <typename Word>
int transpose_launch(const cuda::Call& call, const PermuteWalk& walk, int a) {
  const int b = walk.axes - 1;
  TransposeCall told{.members = call.members, .in = call.in(0), .out = call.out(0)};
  std::int64_t out_stride[Shape::kMaxRank] = {}, stride = 1;
  for (int axis = b; axis >= 0; --axis) {
    out_stride[axis] = stride;
    stride *= walk.size[axis];
  }
  told.a = walk.size[a];
  told.b = walk.size[b];
  told.in_stride = walk.stride[0][b];
  told.out_stride = out_stride[a];
  told.a_tiles = cuda::divide_up(told.a, kTile);
  told.b_tiles = cuda::divide_up(told.b, kTile);
  for (int axis = 0; axis < b; ++axis) {
    if (axis != a) told.walk.add(walk.size[axis], {walk.stride[0][axis], out_stride[axis]});
  }
  const std::int64_t blocks = told.walk.elements() * told.a_tiles * told.b_tiles;
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(call.members.count));
  transpose_kernel<Word><<<grid, dim3(kTile, kTileRows), 0, call.stream>>>(told);
  return cuda::launched();
}

// Word: one element.
template <typename Word>
int permute(const cuda::Call& call, const PermuteWalk& walk) {
  constexpr int kPerWord = 16 / static_cast<int>(sizeof(Word));
  const int last = walk.axes - 1;
  if (walk.stride[0][last] <= 1) {
    const bool wide = (call.in(0) | call.out(0)) % 16 == 0 && walk.by(kPerWord);
    return wide ? permute_launch<uint4>(call, walk, kPerWord) : permute_launch<Word>(call, walk, 1);
  }
  for (int axis = 0; axis < last; ++axis) {
    const bool along_x = walk.stride[0][axis] == 1;
    if (along_x && walk.size[axis] >= kTileRows && walk.size[last] >= kTileRows) {
      return transpose_launch<Word>(call, walk, axis);
    }
  }
  return permute_launch<Word>(call, walk, 1);
}

}  // namespace

cuda::Program cuda_kernel(const Permute& op, Types in, Types out) {
  std::int64_t strides[Shape::kMaxRank] = {}, stride = 1;
  for (int axis = in[0].shape.rank() - 1; axis >= 0; --axis) {
    strides[axis] = stride;
    stride *= in[0].shape[axis];
  }
  PermuteWalk walk;
  for (int axis = 0; axis < out[0].shape.rank(); ++axis) {
    walk.add(out[0].shape[axis], {strides[op.order()[static_cast<std::size_t>(axis)]]});
  }
  switch (size_of(in[0].dtype)) {
    case 2: return {.launch = [walk](const cuda::Call& call) { return permute<std::uint16_t>(call, walk); }};
    case 4: return {.launch = [walk](const cuda::Call& call) { return permute<std::uint32_t>(call, walk); }};
    default: return {.launch = [walk](const cuda::Call& call) { return permute<std::uint64_t>(call, walk); }};
  }
}

}  // namespace norma
