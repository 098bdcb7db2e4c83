// Pooling of images, channels last: the largest number of each window, means of windows, and the mean of an image.
#pragma once

#include "norma/graph/op.h"

namespace norma {

struct PoolingOptions {
  std::int64_t size = 2, stride = 2, padding = 0;  // padding is never the largest
};

// x[batch, height, width, channels] -> y[batch, height', width', channels] and where each came from, i32 of y's shape:
// row * width + column, of equal ones the first. NaN is larger than any number.
class MaxPool final : public Op {
 public:
  explicit MaxPool(PoolingOptions options) : options_(options) {}
  const PoolingOptions& options() const { return options_; }

  std::string_view name() const override { return "max_pool"; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool optional_output(int out) const override { return out == 1; }
  bool wants_narrow(int) const override { return true; }
  void choose(Widths& widths) const override { widths.follow(); }

 private:
  PoolingOptions options_;
};

// Numbers of an image by place: gathered from it (y[b, i, j, c] = x[b, place, c]) or added up in it, the transpose.
// in: x or dy, places i32 of y's shape; out: y, or dx of the given shape. A place lies in the window that it is of.
class Places final : public Op {
 public:
  enum class Way { gather, scatter };
  Places(Way way, Shape image, PoolingOptions windows) : way_(way), image_(image), windows_(windows) {}
  Way way() const { return way_; }
  const PoolingOptions& windows() const { return windows_; }

  std::string_view name() const override { return way_ == Way::gather ? "gather_places" : "scatter_places"; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  bool wants_narrow(int) const override { return true; }
  void choose(Widths& widths) const override { widths.follow(); }

 private:
  Way way_;
  Shape image_;
  PoolingOptions windows_;
};

Wire max_pool(Wire x, PoolingOptions options = {});
// Means of windows that lie side by side; height and width must be multiples of `size`.
Wire average_pool(Wire x, std::int64_t size);
// x[batch, ..., channels] -> [batch, channels]
Wire global_average_pool(Wire x);

}  // namespace norma
