// slice, pad, concat: moves of memory that know no arithmetic, so they work on any dtype.
#include "norma/ops/views.h"

#include "device/cuda/device.cuh"
#include "ops/cuda/copy.h"

namespace norma {
namespace {

// Words of a row; `before` words of zeros come first in the output, and zeros fill what is left of it.
struct WordRows {
  cuda::Members members = {};
  std::int64_t words = 0;  // that are written, over all rows
  std::int64_t width = 0;  // that are written of a row
  std::int64_t before = 0, count = 0;
  std::int64_t in = 0, in_stride = 0, out = 0, out_stride = 0;  // strides in words
};

template <typename Word>
__global__ void __launch_bounds__(cuda::kThreads) word_rows_kernel(const __grid_constant__ WordRows call) {
  const std::int64_t i = std::int64_t{blockIdx.x} * cuda::kThreads + threadIdx.x;
  if (cuda::skipped(call.members, blockIdx.y) || i >= call.words) return;
  std::byte* const member = cuda::base_of(call.members, blockIdx.y);
  const std::int64_t row = cuda::quotient(i, call.width), column = i - row * call.width, from = column - call.before;
  Word word{};  // all-zero bytes are zero in every dtype
  if (from >= 0 && from < call.count) word = cuda::at<const Word>(member, call.in)[row * call.in_stride + from];
  cuda::at<Word>(member, call.out)[row * call.out_stride + column] = word;
}

// `call` in bytes.
int move_rows(WordRows call, std::int64_t rows, cuda::Stream stream) {
  if (rows == 1) call.in_stride = call.out_stride = 0;
  const std::int64_t bits =
      call.width | call.before | call.count | call.in | call.in_stride | call.out | call.out_stride;
  const auto launch = [&]<typename Word>(Word) {
    constexpr auto kBytes = static_cast<std::int64_t>(sizeof(Word));
    call.width /= kBytes;
    call.before /= kBytes;
    call.count /= kBytes;
    call.in_stride /= kBytes;
    call.out_stride /= kBytes;
    call.words = rows * call.width;
    const dim3 grid(cuda::blocks_for(call.words, cuda::kThreads), static_cast<unsigned>(call.members.count));
    word_rows_kernel<Word><<<grid, cuda::kThreads, 0, stream>>>(call);
    return cuda::launched();
  };
  if (bits % 16 == 0) return launch(uint4{});
  if (bits % 8 == 0) return launch(uint2{});
  if (bits % 4 == 0) return launch(std::uint32_t{});
  return launch(std::uint16_t{});
}

// A tensor as [outer, size of the axis, inner].
struct AxisBytes {
  std::int64_t outer = 1, inner = 1, row = 1;  // bytes of an entry of the axis, and of all of them

  AxisBytes(const Type& type, int axis) {
    const int last = axis < 0 ? axis + type.shape.rank() : axis;
    for (int i = 0; i < last; ++i) outer *= type.shape[i];
    row = type.bytes() / outer;
    inner = row / type.shape[last];
  }
};

}  // namespace

namespace cuda {

int copy_rows(const RowCopy& copy, Stream stream) {
  return move_rows({.members = copy.members,
                    .width = copy.bytes,
                    .count = copy.bytes,
                    .in = copy.in,
                    .in_stride = copy.in_stride,
                    .out = copy.out,
                    .out_stride = copy.out_stride},
                   copy.rows, stream);
}

}  // namespace cuda

cuda::Program cuda_kernel(const Slice& op, Types in, Types) {
  const AxisBytes x(in[0], op.axis());
  const std::int64_t first = op.begin() * x.inner, bytes = op.count() * x.inner;
  return {.launch = [x, first, bytes](const cuda::Call& call) {
    return cuda::copy_rows({.members = call.members,
                            .rows = x.outer,
                            .bytes = bytes,
                            .in = call.in(0) + first,
                            .in_stride = x.row,
                            .out = call.out(0),
                            .out_stride = bytes},
                           call.stream);
  }};
}

cuda::Program cuda_kernel(const Pad& op, Types in, Types out) {
  const AxisBytes x(in[0], op.axis()), y(out[0], op.axis());
  const std::int64_t before = op.begin() * x.inner;
  return {.launch = [x, y, before](const cuda::Call& call) {
    return move_rows({.members = call.members,
                      .width = y.row,
                      .before = before,
                      .count = x.row,
                      .in = call.in(0),
                      .in_stride = x.row,
                      .out = call.out(0),
                      .out_stride = y.row},
                     x.outer, call.stream);
  }};
}

cuda::Program cuda_kernel(const Concat& op, Types in, Types out) {
  const AxisBytes y(out[0], op.axis());
  std::vector<std::int64_t> bytes;  // of a row of each part
  for (const Type& part : in) bytes.push_back(part.bytes() / y.outer);
  return {.launch = [y, bytes](const cuda::Call& call) {
    std::int64_t first = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const int error = cuda::copy_rows({.members = call.members,
                                         .rows = y.outer,
                                         .bytes = bytes[i],
                                         .in = call.in(static_cast<int>(i)),
                                         .in_stride = bytes[i],
                                         .out = call.out(0) + first,
                                         .out_stride = y.row},
                                        call.stream);
      if (error != 0) return error;
      first += bytes[i];
    }
    return 0;
  }};
}

}  // namespace norma
