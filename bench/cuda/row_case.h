// One row norm on one shape, as the check and the timing of the CUDA kernels use it: which tensors there are and where
// each lies in a member's memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "norms/cuda/row_launch.h"

namespace norma::bench {

enum class RowNormName { layer, rms, scale };
enum class RowAffine { none, given };            // gain and, where the norm has one, bias
enum class RowPlace { apart, over_an_input };    // where outputs lie
enum class RowAlignment { whole, off_by_four };  // of tensors, against 16 bytes

struct RowShape {
  RowNormName norm = RowNormName::layer;
  cuda::RowTypes types = cuda::RowTypes::f32;
  std::int64_t rows = 1, width = 1;
  std::int64_t counted = 0;  // 0: all
  int extra = 0;             // forward: further terms; backward: residuals
  RowAffine affine = RowAffine::given;
  RowPlace place = RowPlace::apart;
  RowAlignment alignment = RowAlignment::whole;
  float eps = 1e-5f;

  bool centred() const { return norm == RowNormName::layer; }
  bool one_gain() const { return norm == RowNormName::scale; }
  std::int64_t counts() const { return counted > 0 ? counted : width; }
};

enum class Element { f32, bf16 };

enum class Role { input, output, scratch };

struct RowTensor {
  std::string name;
  Role role = Role::input;
  Element element = Element::f32;
  std::int64_t offset = 0, size = 0;  // bytes from the member's begin, elements

  std::int64_t bytes() const { return size * (element == Element::f32 ? 4 : 2); }
};

// A call with all its tensors laid out one after another; `bytes` is what a member needs.
struct ForwardCase {
  RowShape shape;
  cuda::RowNormCall call;
  std::vector<RowTensor> tensors;
  std::int64_t bytes = 0;
};
struct BackwardCase {
  RowShape shape;
  cuda::RowNormBackwardCall call;
  std::vector<RowTensor> tensors;
  std::int64_t bytes = 0;
};

ForwardCase forward_case(const RowShape& shape);
BackwardCase backward_case(const RowShape& shape);

int launch(const ForwardCase& row_case, const cuda::Members& members, cuda::Stream stream);
int launch(const BackwardCase& row_case, const cuda::Members& members, cuda::Stream stream);

std::string describe(const ForwardCase& row_case);
std::string describe(const BackwardCase& row_case);
std::string name_of(RowNormName norm);
std::string name_of(cuda::RowTypes types);

}  // namespace norma::bench
