// Convolution of images, channels last, and its two gradients, in f32: oneDNN's, and of 3 x 3 Winograd's (winograd.h).
// Always on the calling thread: the tiles of a kernel are the parallelism. Weights are [height, width, in / groups,
// out], and lie packed while it runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace norma {

struct ConvolutionShape {
  enum class Pass {
    forward,  // x, weight -> y
    data,     // dy, weight -> dx
    weights,  // x, dy -> dweight
  };

  Pass pass = Pass::forward;
  std::int64_t batch = 1, height = 1, width = 1, in = 1;  // of x
  std::int64_t out_height = 1, out_width = 1, out = 1;    // of y
  std::int64_t kernel_height = 1, kernel_width = 1;
  std::int64_t stride = 1, padding = 0, dilation = 1, groups = 1;

  auto operator<=>(const ConvolutionShape&) const = default;
};

class Convolution {
 public:
  virtual ~Convolution() = default;
  virtual std::int64_t packed_floats() const = 0;  // of a weight as the library reads or writes it fastest
  virtual bool packs_like(const Convolution& other) const = 0;
  virtual std::int64_t worker_bytes() const = 0;  // private scratch that everything below needs
  virtual void pack(const float* weight, float* packed, std::byte* worker) const = 0;
  virtual void unpack(const float* packed, float* weight, std::byte* worker) const = 0;
  // In the order in which the pass names them; the weight is packed.
  virtual void run(const float* first, const float* second, float* result, std::byte* worker) const = 0;
};

// Kept for the life of the process and shared: equal shapes compile once.
std::shared_ptr<const Convolution> make_convolution(const ConvolutionShape& shape);

}  // namespace norma
