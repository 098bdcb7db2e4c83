// Sums of squares over many gradients in two launches, over pieces of fixed size added in order; what clipping makes of
// them; and gradients gathered over several batches.
#include "norma/ops/gradient_norm.h"

#include <algorithm>

#include "ops/cuda/map.cuh"
#include "ops/cuda/table.h"

namespace norma {
namespace {

constexpr std::int64_t kSquaresPiece = 16384;  // elements of a block
constexpr int kSquaresWarps = cuda::kMostWarps;

struct SquaresPiece {
  std::int64_t offset;  // from the member's base, in bytes
  std::int64_t count;
};

struct SquaresCall {
  cuda::Members members = {};
  const SquaresPiece* pieces = nullptr;
  const std::int64_t* first = nullptr;  // piece of each gradient, and the end
  std::int64_t sums = 0;                // f64 [pieces]
  std::int64_t totals = 0;              // f64 [gradients]
  std::int64_t gradients = 0;
  std::int64_t out_squares = 0, out_total = 0;
};

__global__ void __launch_bounds__(cuda::kThreads) squares_kernel(const __grid_constant__ SquaresCall call) {
  __shared__ double shared[cuda::kMostWarps];
  if (cuda::skipped(call.members, blockIdx.y)) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const SquaresPiece piece = call.pieces[blockIdx.x];
  const float* const x = cuda::at<const float>(member, piece.offset);
  float sum = 0.0f;
  std::int64_t done = 0;
  if (piece.offset % 16 == 0) {
    float sums[4] = {};
    done = piece.count / 4 * 4;
#pragma unroll 4
    for (std::int64_t i = threadIdx.x * 4; i < done; i += cuda::kThreads * 4) {
      float v[4];
      cuda::load<float, 4>(x + i, v);
#pragma unroll
      for (int j = 0; j < 4; ++j) sums[j] = fmaf(v[j], v[j], sums[j]);
    }
    sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
  for (std::int64_t i = done + threadIdx.x; i < piece.count; i += cuda::kThreads) sum = fmaf(x[i], x[i], sum);
  const double all = cuda::block_sum(static_cast<double>(sum), shared);
  if (threadIdx.x == 0) cuda::at<double>(member, call.sums)[blockIdx.x] = all;
}

// One block: a warp to a gradient, then one warp to all of them.
__global__ void __launch_bounds__(cuda::kWarp* kSquaresWarps)
    total_squares_kernel(const __grid_constant__ SquaresCall call) {
  if (cuda::skipped(call.members, blockIdx.y)) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const int lane = static_cast<int>(threadIdx.x) % cuda::kWarp, warp = static_cast<int>(threadIdx.x) / cuda::kWarp;
  const double* const sums = cuda::at<const double>(member, call.sums);
  double* const totals = cuda::at<double>(member, call.totals);
  for (std::int64_t gradient = warp; gradient < call.gradients; gradient += kSquaresWarps) {
    double sum = 0;
    for (std::int64_t i = call.first[gradient] + lane; i < call.first[gradient + 1]; i += cuda::kWarp) sum += sums[i];
    sum = cuda::warp_sum(sum);
    if (lane != 0) continue;
    totals[gradient] = sum;
    cuda::at<float>(member, call.out_squares)[gradient] = static_cast<float>(sum);
  }
  __syncthreads();
  if (warp != 0) return;
  double all = 0;
  for (std::int64_t gradient = lane; gradient < call.gradients; gradient += cuda::kWarp) all += totals[gradient];
  all = cuda::warp_sum(all);
  if (lane == 0) *cuda::at<float>(member, call.out_total) = static_cast<float>(all);
}

// first[i]: piece with which gradient i begins; one more for the end.
std::vector<std::int64_t> first_pieces(Types in) {
  std::vector<std::int64_t> first = {0};
  for (const Type& type : in) first.push_back(first.back() + cuda::divide_up(type.shape.elements(), kSquaresPiece));
  return first;
}

std::vector<std::byte> squares_table(const std::vector<std::int64_t>& elements, const std::vector<std::int64_t>& first,
                                     const cuda::Call& call) {
  std::vector<SquaresPiece> pieces;
  for (std::size_t i = 0; i < elements.size(); ++i) {
    for (std::int64_t begin = 0; begin < elements[i]; begin += kSquaresPiece) {
      pieces.push_back({call.in(static_cast<int>(i)) + begin * static_cast<std::int64_t>(sizeof(float)),
                        std::min(kSquaresPiece, elements[i] - begin)});
    }
  }
  std::vector<std::byte> table;
  cuda::append_to_table(table, pieces);
  cuda::append_to_table(table, first);
  return table;
}

struct ClipCall {
  cuda::Members members = {};
  std::int64_t squares = 0, bound = 0, norm = 0, scale = 0;
};

__global__ void clip_kernel(const __grid_constant__ ClipCall call) {
  if (cuda::skipped(call.members, blockIdx.y)) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const float norm = sqrtf(*cuda::at<const float>(member, call.squares));
  const float bound = *cuda::at<const float>(member, call.bound);
  *cuda::at<float>(member, call.norm) = norm;
  *cuda::at<float>(member, call.scale) = !isfinite(norm) ? norm : (bound > 0.0f && norm > bound ? bound / norm : 1.0f);
}

struct AccumulateCall {
  cuda::Members members = {};
  std::int64_t gradient = 0, flag = 0, state = 0, elements = 0;
};

template <int V>
__global__ void __launch_bounds__(cuda::kThreads) accumulate_kernel(const __grid_constant__ AccumulateCall call) {
  const std::int64_t first = (std::int64_t{blockIdx.x} * cuda::kThreads + threadIdx.x) * V;
  if (cuda::skipped(call.members, blockIdx.y) || first >= call.elements) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  float* const state = cuda::at<float>(member, call.state) + first;
  float sum[V];
  cuda::load<float, V>(cuda::at<const float>(member, call.gradient) + first, sum);
  if (*cuda::at<const float>(member, call.flag) == 0.0f) {
    float old[V];
    cuda::load<float, V>(state, old);
#pragma unroll
    for (int j = 0; j < V; ++j) sum[j] += old[j];
  }
  cuda::store<float, V>(state, sum);
}

}  // namespace

cuda::Program cuda_kernel(const SquaredSums&, Types in, Types) {
  std::vector<std::int64_t> elements;
  for (const Type& type : in) elements.push_back(type.shape.elements());
  const std::vector<std::int64_t> first = first_pieces(in);
  const std::int64_t pieces = first.back(), gradients = static_cast<std::int64_t>(in.size());
  return {.launch =
              [pieces, gradients](const cuda::Call& call) {
                const std::size_t after = cuda::next_in_table<SquaresPiece>(0, static_cast<std::size_t>(pieces));
                const SquaresCall told{call.members,
                                       reinterpret_cast<const SquaresPiece*>(call.table),
                                       reinterpret_cast<const std::int64_t*>(call.table + after),
                                       call.scratch,
                                       call.scratch + pieces * static_cast<std::int64_t>(sizeof(double)),
                                       gradients,
                                       call.out(0),
                                       call.out(1)};
                const auto members = static_cast<unsigned>(call.members.count);
                squares_kernel<<<dim3(static_cast<unsigned>(pieces), members), cuda::kThreads, 0, call.stream>>>(told);
                if (const int error = cuda::launched(); error != 0) return error;
                total_squares_kernel<<<dim3(1, members), cuda::kWarp * kSquaresWarps, 0, call.stream>>>(told);
                return cuda::launched();
              },
          .scratch_bytes = (pieces + gradients) * static_cast<std::int64_t>(sizeof(double)),
          .table = [elements, first](const cuda::Call& call) { return squares_table(elements, first, call); }};
}

cuda::Program cuda_kernel(const ClipScale&, Types, Types) {
  return {.launch = [](const cuda::Call& call) {
    const ClipCall told{call.members, call.in(0), call.in(1), call.out(0), call.out(1)};
    clip_kernel<<<dim3(1, static_cast<unsigned>(call.members.count)), 1, 0, call.stream>>>(told);
    return cuda::launched();
  }};
}

cuda::Program cuda_kernel(const Accumulate&, Types in, Types) {
  return {.launch = [elements = in[0].shape.elements()](const cuda::Call& call) {
    const AccumulateCall told{call.members, call.in(1), call.in(2), call.out(0), elements};  // the state is updated
    const auto grid = [&](int v) {
      return dim3(cuda::blocks_for(elements, cuda::kThreads * v), static_cast<unsigned>(call.members.count));
    };
    if ((told.gradient | told.state) % 16 == 0 && elements % 4 == 0) {
      accumulate_kernel<4><<<grid(4), cuda::kThreads, 0, call.stream>>>(told);
    } else {
      accumulate_kernel<1><<<grid(1), cuda::kThreads, 0, call.stream>>>(told);
    }
    return cuda::launched();
  }};
}

}  // namespace norma
