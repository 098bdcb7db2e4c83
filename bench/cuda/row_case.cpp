#include "bench/cuda/row_case.h"

namespace norma::bench {
namespace {

Element stream_element(cuda::RowTypes types) { return types == cuda::RowTypes::bf16 ? Element::bf16 : Element::f32; }
Element branch_element(cuda::RowTypes types) { return types == cuda::RowTypes::f32 ? Element::f32 : Element::bf16; }

// Lays tensors out at multiples of 256 bytes, or four bytes behind.
class Layout {
 public:
  Layout(RowAlignment alignment, std::vector<RowTensor>& tensors) : tensors_(tensors) {
    if (alignment == RowAlignment::off_by_four) next_ = shift_ = 4;
  }

  std::int64_t add(const std::string& name, Role role, Element element, std::int64_t size) {
    tensors_.push_back({name, role, element, next_, size});
    next_ = (next_ + tensors_.back().bytes() + 255) / 256 * 256 + 256 + shift_;
    return tensors_.back().offset;
  }
  // An output in the place of the input at `offset`.
  std::int64_t over(const std::string& name, std::int64_t offset) {
    for (const RowTensor& tensor : tensors_) {
      if (tensor.offset != offset) continue;
      RowTensor output = tensor;
      output.name = name;
      output.role = Role::output;
      tensors_.push_back(output);
      return offset;
    }
    return cuda::kAbsent;
  }
  std::int64_t bytes() const { return (next_ + 255) / 256 * 256; }

 private:
  std::vector<RowTensor>& tensors_;
  std::int64_t next_ = 0, shift_ = 0;
};

std::string describe_shape(const RowShape& shape, const std::string& direction) {
  std::string text = name_of(shape.norm) + "/" + direction +
                     (shape.extra > 0 ? "+" + std::to_string(shape.extra) : "") + "/" + name_of(shape.types) + "/" +
                     std::to_string(shape.rows) + "x" + std::to_string(shape.width);
  if (shape.counted > 0) text += "/counted=" + std::to_string(shape.counted);
  if (shape.affine == RowAffine::none) text += "/no affine";
  if (shape.place == RowPlace::over_an_input) text += "/in place";
  if (shape.alignment == RowAlignment::off_by_four) text += "/unaligned";
  return text;
}

}  // namespace

ForwardCase forward_case(const RowShape& shape) {
  ForwardCase result{.shape = shape, .call = {}, .tensors = {}};
  Layout layout(shape.alignment, result.tensors);
  const Element stream = stream_element(shape.types), branch = branch_element(shape.types);
  const std::int64_t all = shape.rows * shape.width;
  cuda::RowNormCall& call = result.call;
  call.types = shape.types;
  call.rows = shape.rows;
  call.width = shape.width;
  call.counted = shape.counts();
  call.terms = 1 + shape.extra;
  for (int k = 0; k < call.terms; ++k) {
    call.term[k] = layout.add("term" + std::to_string(k), Role::input, k == 0 ? stream : branch, all);
  }
  call.eps = layout.add("eps", Role::input, Element::f32, 1);
  if (shape.affine == RowAffine::given) {
    call.gain = layout.add("gain", Role::input, Element::f32, shape.one_gain() ? 1 : shape.width);
    if (shape.centred()) call.bias = layout.add("bias", Role::input, Element::f32, shape.width);
  }
  const bool over = shape.place == RowPlace::over_an_input;
  if (over && (call.terms > 1 || stream == branch)) {
    call.y = layout.over("y", call.term[call.terms - 1]);
  } else {
    call.y = layout.add("y", Role::output, branch, all);
  }
  call.rstd = layout.add("rstd", Role::output, Element::f32, shape.rows);
  if (shape.centred()) call.mean = layout.add("mean", Role::output, Element::f32, shape.rows);
  if (call.terms > 1) {
    call.sum = over ? layout.over("sum", call.term[0]) : layout.add("sum", Role::output, stream, all);
  }
  result.bytes = layout.bytes();
  return result;
}

BackwardCase backward_case(const RowShape& shape) {
  BackwardCase result{.shape = shape, .call = {}, .tensors = {}};
  Layout layout(shape.alignment, result.tensors);
  const Element stream = stream_element(shape.types), branch = branch_element(shape.types);
  const std::int64_t all = shape.rows * shape.width;
  cuda::RowNormBackwardCall& call = result.call;
  call.types = shape.types;
  call.rows = shape.rows;
  call.width = shape.width;
  call.counted = shape.counts();
  call.x = layout.add("x", Role::input, stream, all);
  call.dy = layout.add("dy", Role::input, branch, all);
  call.eps = layout.add("eps", Role::input, Element::f32, 1);
  call.rstd = layout.add("rstd", Role::input, Element::f32, shape.rows);
  if (shape.centred()) call.mean = layout.add("mean", Role::input, Element::f32, shape.rows);
  if (shape.affine == RowAffine::given) {
    call.gain = layout.add("gain", Role::input, Element::f32, shape.one_gain() ? 1 : shape.width);
  }
  call.residuals = shape.extra;
  for (int k = 0; k < shape.extra; ++k) {
    call.residual[k] = layout.add("residual" + std::to_string(k), Role::input, stream, all);
  }
  if (shape.place == RowPlace::over_an_input) {
    call.dx = layout.over("dx", shape.extra > 0 ? call.residual[0] : call.x);
  } else {
    call.dx = layout.add("dx", Role::output, stream, all);
  }
  if (shape.affine == RowAffine::given) {
    call.dgain = layout.add("dgain", Role::output, Element::f32, shape.one_gain() ? 1 : shape.width);
    if (shape.centred()) call.dbias = layout.add("dbias", Role::output, Element::f32, shape.width);
    const std::int64_t scratch = cuda::row_backward_scratch(shape.types, shape.rows, shape.width);
    call.scratch = layout.add("scratch", Role::scratch, Element::f32, scratch / 4);
  }
  result.bytes = layout.bytes();
  return result;
}

int launch(const ForwardCase& row_case, const cuda::Members& members, cuda::Stream stream) {
  cuda::RowNormCall call = row_case.call;
  call.members = members;
  switch (row_case.shape.norm) {
    case RowNormName::layer: return cuda::layer_norm(call, stream);
    case RowNormName::rms: return cuda::rms_norm(call, stream);
    case RowNormName::scale: return cuda::scale_norm(call, stream);
  }
  return -1;
}

int launch(const BackwardCase& row_case, const cuda::Members& members, cuda::Stream stream) {
  cuda::RowNormBackwardCall call = row_case.call;
  call.members = members;
  switch (row_case.shape.norm) {
    case RowNormName::layer: return cuda::layer_norm_backward(call, stream);
    case RowNormName::rms: return cuda::rms_norm_backward(call, stream);
    case RowNormName::scale: return cuda::scale_norm_backward(call, stream);
  }
  return -1;
}

std::string describe(const ForwardCase& row_case) { return describe_shape(row_case.shape, "forward"); }
std::string describe(const BackwardCase& row_case) { return describe_shape(row_case.shape, "backward"); }

std::string name_of(RowNormName norm) {
  switch (norm) {
    case RowNormName::layer: return "layer";
    case RowNormName::rms: return "rms";
    case RowNormName::scale: return "scale";
  }
  return "norm";
}

std::string name_of(cuda::RowTypes types) {
  switch (types) {
    case cuda::RowTypes::f32: return "f32";
    case cuda::RowTypes::bf16: return "bf16";
    case cuda::RowTypes::f32_stream_bf16_branch: return "f32+bf16";
  }
  return "types";
}

}  // namespace norma::bench
