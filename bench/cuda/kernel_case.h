// One kernel on one shape, as checks and timings use it: which tensors there are, where each lies in a member's memory,
// and what they should hold afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "norma/device/cuda/kernel.h"

namespace norma::bench {

enum class TensorType { f32, bf16, i32 };
enum class TensorUse { input, output, scratch, overwritten };  // overwritten: an input where an output lies afterwards

struct CaseTensor {
  std::string name;
  TensorUse use = TensorUse::input;
  TensorType type = TensorType::f32;
  std::int64_t offset = 0, size = 0;  // bytes from the member's begin, elements

  std::int64_t element_bytes() const { return type == TensorType::bf16 ? 2 : 4; }
  std::int64_t bytes() const { return size * element_bytes(); }
};

double read_element(const std::byte* member, const CaseTensor& tensor, std::int64_t index);
void write_element(std::byte* member, const CaseTensor& tensor, std::int64_t index, double value);
std::vector<double> read_tensor(const std::byte* member, const CaseTensor& tensor);
void write_tensor(std::byte* member, const CaseTensor& tensor, const std::vector<double>& values);

// What a tensor should hold, to within a share of the largest of it, or of what cancels on the way there.
struct Wanted {
  std::vector<double> values;
  double tolerance = 0;
  double cancels = 0;
};

struct KernelCase {
  std::string name;
  std::vector<CaseTensor> tensors = {};
  std::int64_t bytes = 0;                                                          // of one member: a multiple of 256
  double flops = 0;                                                                // of one member
  std::function<void(std::byte* member, std::mt19937_64& random)> fill = nullptr;  // the inputs
  std::function<std::map<std::string, Wanted>(const std::byte* member)> expect = nullptr;
  std::function<int(const cuda::Members& members, cuda::Stream stream)> launch = nullptr;

  // Appends a tensor `shift` bytes after the next multiple of 256; its offset.
  std::int64_t add(const std::string& tensor, TensorUse use, TensorType type, std::int64_t size,
                   std::int64_t shift = 0);
  const CaseTensor& find(const std::string& tensor) const;
};

// Fresh random inputs, everything else poisoned, several members of which one is not active. Every output is compared
// with what is wanted, every other byte must be as it was, and a second run over other poison must give the same bits.
// Empty, or what is wrong.
std::string check_case(const KernelCase& kernel_case, std::mt19937_64& random);

// The same outputs as another case that has the same inputs, for so many members of which every third is not active:
// noise in all of them, and so fast that shapes may be as large as in use. A second run must give the same bits. Empty,
// or what is wrong.
std::string compare_cases(const KernelCase& kernel_case, const KernelCase& trusted, int members);

// Milliseconds of one launch for so many members: the median over batches of launches.
double time_case(const KernelCase& kernel_case, int members);

}  // namespace norma::bench
