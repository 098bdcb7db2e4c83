// What an op becomes on a GPU: launches on a stream, for all members at once. The member is an axis of the grid. No
// CUDA header is needed to read this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

struct CUstream_st;

namespace norma::cuda {

using Stream = CUstream_st*;

constexpr std::int64_t kAbsent = -1;  // offset of a tensor that is not given, or not wanted

// Where tensors are: tensor t of member m begins at base + m * stride + offset of t, all in bytes. Base and stride
// are multiples of 256, and so are offsets, except where a tensor is a view into another. Kernels take members either
// way: with a negative stride, the last one comes first.
struct Members {
  std::byte* base = nullptr;
  std::int64_t stride = 0;
  int count = 1;
  // [2, count] on the device, 0: the member is skipped; null: none is. First by members, then from the last to the
  // first; points at the flag of the member at `base`.
  const std::uint8_t* active = nullptr;
};

// The same members from the other end.
inline Members turned(Members members) {
  members.base += (members.count - 1) * members.stride;
  if (members.active != nullptr) members.active += members.stride < 0 ? -members.count : members.count;
  members.stride = -members.stride;
  return members;
}

// First to last: for libraries and copy engines, which know no negative strides.
inline Members in_order(const Members& members) { return members.stride < 0 ? turned(members) : members; }

class Products;

enum class Math { f32, tf32 };  // how products of f32 tensors are rounded

// One call of a kernel.
struct Call {
  Members members;
  const std::int64_t* offsets = nullptr;  // from a member's base: inputs, then outputs; negative: no memory
  int inputs = 0;
  std::int64_t scratch = 0;          // offset of Program::scratch_bytes of each member; what they hold is undefined
  const std::byte* table = nullptr;  // what Program::table gave, on the device
  Products* products = nullptr;      // matrix products of this session
  Math math = Math::f32;
  Stream stream = nullptr;

  std::int64_t in(int index) const { return offsets[index]; }
  std::int64_t out(int index) const { return offsets[inputs + index] < 0 ? kAbsent : offsets[inputs + index]; }
};

// Launches only enqueue; they are recorded once and replayed, so what they do may depend on nothing but shapes and
// offsets. What decides about bits follows from the op, its types and the number of members: a member's results do not
// depend on who its neighbours are, and alone they are the same to rounding; two runs give the same bits.
struct Program {
  std::function<int(const Call&)> launch = nullptr;  // 0 or a cudaError_t
  std::int64_t scratch_bytes = 0;                    // of one member, for the time of the call
  // Data that the kernel reads besides tensors (long lists of offsets, sizes, settings): made once when the session is
  // opened, from the same offsets that every call has.
  std::function<std::vector<std::byte>(const Call&)> table = nullptr;
};

}  // namespace norma::cuda
