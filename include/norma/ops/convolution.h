// Convolution of images, channels last: y[b, i, j, o] = sum over p, q, c of x[b, i s + p d - pad, j s + q d - pad, c]
// W[p, q, c, o], with o and c of one group. Positions outside of the image count as 0.
#pragma once

#include "norma/graph/op.h"

namespace norma {

struct ConvolutionOptions {
  std::int64_t stride = 1, padding = 0, dilation = 1;
  std::int64_t groups = 1;  // as many as channels: depthwise
};

// x[batch, height, width, in], W[kernel height, kernel width, in / groups, out] -> y[batch, height', width', out]
class Conv2d final : public Op {
 public:
  explicit Conv2d(ConvolutionOptions options) : options_(options) {}
  const ConvolutionOptions& options() const { return options_; }

  std::string_view name() const override { return "conv2d"; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int) const override { return true; }
  void choose(Widths& widths) const override { widths.all(true); }

 private:
  ConvolutionOptions options_;
};

// dy, W -> dx of the given shape. Linear in each, so it and the next are their own derivatives' building blocks.
class Conv2dData final : public Op {
 public:
  Conv2dData(ConvolutionOptions options, Shape x) : options_(options), x_(x) {}
  const ConvolutionOptions& options() const { return options_; }

  std::string_view name() const override { return "conv2d_data"; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int) const override { return true; }
  void choose(Widths& widths) const override { widths.all(true); }

 private:
  ConvolutionOptions options_;
  Shape x_;
};

// x, dy -> dW of the given shape.
class Conv2dWeights final : public Op {
 public:
  Conv2dWeights(ConvolutionOptions options, Shape weight) : options_(options), weight_(weight) {}
  const ConvolutionOptions& options() const { return options_; }

  std::string_view name() const override { return "conv2d_weights"; }
  std::string attributes() const override;
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override;
  Cost cost(std::span<const Type> in, std::span<const Type> out) const override;
  bool wants_narrow(int) const override { return true; }
  void choose(Widths& widths) const override { widths.all(true), widths.out = {false}; }

 private:
  ConvolutionOptions options_;
  Shape weight_;
};

Wire conv2d(Wire x, Wire weight, ConvolutionOptions options = {});

// Transposed: x[batch, height, width, in], W[kernel height, kernel width, out / groups, in] -> what conv2d with these
// options and this weight has for the gradient of its input, [batch, (height - 1) stride - 2 padding + (kernel height -
// 1) dilation + 1 + output_padding, ..., out]. output_padding says which of the sizes that conv2d makes alike is meant.
Wire transposed_conv2d(Wire x, Wire weight, ConvolutionOptions options = {}, std::int64_t output_padding = 0);

}  // namespace norma
