// Each case: fresh random inputs, everything else poisoned, several members of which one is not active. Then every
// output is compared with the reference, every other byte must be as it was, and a second run must give the same bits.
#include "bench/cuda/row_check.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <random>

#include "bench/cuda/device.h"
#include "bench/cuda/row_case.h"
#include "bench/cuda/row_reference.h"

namespace norma::bench {
namespace {

using cuda::RowTypes;

constexpr int kMembers = 3, kIdle = 1;  // the member that is not active

float bf16_value(std::uint16_t bits) {
  const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, 4);
  return value;
}

std::uint16_t bf16_bits(float value) {  // to the nearest, ties to even; no NaN here
  std::uint32_t wide;
  std::memcpy(&wide, &value, 4);
  return static_cast<std::uint16_t>((wide + 0x7fffu + ((wide >> 16) & 1u)) >> 16);
}

double read(const std::byte* member, const RowTensor& tensor, std::int64_t i) {
  if (tensor.element == Element::bf16) {
    std::uint16_t bits;
    std::memcpy(&bits, member + tensor.offset + 2 * i, 2);
    return bf16_value(bits);
  }
  float value;
  std::memcpy(&value, member + tensor.offset + 4 * i, 4);
  return value;
}

void write(std::byte* member, const RowTensor& tensor, std::int64_t i, float value) {
  if (tensor.element == Element::bf16) {
    const std::uint16_t bits = bf16_bits(value);
    std::memcpy(member + tensor.offset + 2 * i, &bits, 2);
  } else {
    std::memcpy(member + tensor.offset + 4 * i, &value, 4);
  }
}

// What a member's tensors should hold afterwards, by name; over how many numbers each was summed, and how large was
// what cancels on the way to each value.
struct Expected {
  std::vector<double> values;
  double summed = 1;
  std::vector<double> cancels = {};  // empty: nothing
};
using Expectation = std::map<std::string, Expected>;

class Inputs {
 public:
  Inputs(const std::byte* member, const std::vector<RowTensor>& tensors) : member_(member), tensors_(tensors) {}

  const RowTensor* find(const std::string& name) const {
    for (const RowTensor& tensor : tensors_) {
      if (tensor.name == name) return &tensor;
    }
    return nullptr;
  }
  // Elements [begin, begin + size) of a tensor, none if there is no such tensor.
  std::vector<double> values(const std::string& name, std::int64_t begin, std::int64_t size) const {
    const RowTensor* const tensor = find(name);
    std::vector<double> result;
    if (tensor == nullptr) return result;
    for (std::int64_t i = 0; i < size; ++i) result.push_back(read(member_, *tensor, begin + i));
    return result;
  }

 private:
  const std::byte* member_;
  const std::vector<RowTensor>& tensors_;
};

void append(std::vector<double>& to, const std::vector<double>& from) { to.insert(to.end(), from.begin(), from.end()); }

Expectation expect(const ForwardCase& row_case, const std::byte* member) {
  const RowShape& shape = row_case.shape;
  const Inputs inputs(member, row_case.tensors);
  const std::vector<double> gain = inputs.values("gain", 0, shape.one_gain() ? 1 : shape.width);
  const std::vector<double> bias = inputs.values("bias", 0, shape.width);
  const double width = static_cast<double>(shape.width);
  Expectation result{{"y", {{}, width}}, {"rstd", {{}, width}}, {"mean", {{}, width}}, {"sum", {}}};
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    std::vector<double> x = inputs.values("term0", row * shape.width, shape.width);
    for (int k = 1; k <= shape.extra; ++k) {
      const std::vector<double> term = inputs.values("term" + std::to_string(k), row * shape.width, shape.width);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] += term[i];
    }
    if (shape.extra > 0 && shape.types == RowTypes::bf16) {
      for (double& v : x) v = bf16_value(bf16_bits(static_cast<float>(v)));
    }
    const RowForwardReference reference = reference_forward(shape, x, gain, bias);
    append(result["y"].values, reference.y);
    result["rstd"].values.push_back(reference.rstd);
    result["y"].cancels.resize(result["y"].values.size(), 2 * shape.extra * reference.rstd);
    result["rstd"].cancels.push_back(2 * shape.extra * reference.rstd * reference.rstd);  // terms are about 1
    result["mean"].values.push_back(reference.mean);
    append(result["sum"].values, x);
  }
  return result;
}

Expectation expect(const BackwardCase& row_case, const std::byte* member) {
  const RowShape& shape = row_case.shape;
  const Inputs inputs(member, row_case.tensors);
  const std::vector<double> gain = inputs.values("gain", 0, shape.one_gain() ? 1 : shape.width);
  const double width = static_cast<double>(shape.width), rows = static_cast<double>(shape.rows);
  Expectation result{
      {"dx", {{}, width}}, {"dgain", {{}, shape.one_gain() ? rows * width : rows}}, {"dbias", {{}, rows}}};
  const std::vector<double> rstd = inputs.values("rstd", 0, shape.rows);
  result["dgain"].values.resize(shape.one_gain() ? 1 : static_cast<std::size_t>(shape.width), 0.0);
  result["dbias"].values.resize(static_cast<std::size_t>(shape.width), 0.0);
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    const std::int64_t begin = row * shape.width;
    const std::vector<double> dy = inputs.values("dy", begin, shape.width);
    RowBackwardReference reference = reference_backward(shape, inputs.values("x", begin, shape.width), dy, gain);
    for (int k = 0; k < shape.extra; ++k) {
      const std::vector<double> residual = inputs.values("residual" + std::to_string(k), begin, shape.width);
      for (std::size_t i = 0; i < residual.size(); ++i) reference.dx[i] += residual[i];
    }
    append(result["dx"].values, reference.dx);
    for (std::size_t i = 0; i < dy.size(); ++i) {
      const double g = std::abs(dy[i] * (gain.empty() ? 1 : gain[gain.size() == 1 ? 0 : i]));
      result["dx"].cancels.push_back(g * rstd[static_cast<std::size_t>(row)]);
    }
    for (std::size_t i = 0; i < reference.dgain.size(); ++i) result["dgain"].values[i] += reference.dgain[i];
    for (std::size_t i = 0; i < dy.size(); ++i) result["dbias"].values[i] += dy[i];
  }
  return result;
}

// Statistics are inputs of the backward pass: those of x.
void write_statistics(const BackwardCase& row_case, std::byte* member) {
  const Inputs inputs(member, row_case.tensors);
  for (std::int64_t row = 0; row < row_case.shape.rows; ++row) {
    const std::vector<double> x = inputs.values("x", row * row_case.shape.width, row_case.shape.width);
    const RowForwardReference reference = reference_forward(row_case.shape, x, {}, {});
    write(member, *inputs.find("rstd"), row, static_cast<float>(reference.rstd));
    if (inputs.find("mean") != nullptr) write(member, *inputs.find("mean"), row, static_cast<float>(reference.mean));
  }
}
void write_statistics(const ForwardCase&, std::byte*) {}

// Every element within the rounding of its type, and of f32 sums of that many numbers, against its own size and the
// tensor's: a NaN fails.
std::string compare(const std::byte* member, const RowTensor& tensor, const Expected& expected) {
  double squares = 0;
  for (const double v : expected.values) squares += v * v;
  const double typical = std::sqrt(squares / static_cast<double>(expected.values.size()));
  const double f32 = std::ldexp(1.0, -23) * (16 + std::sqrt(expected.summed));
  const double tolerance = tensor.element == Element::bf16 ? std::ldexp(1.0, -8) : f32;
  for (std::int64_t i = 0; i < tensor.size; ++i) {
    const std::size_t at = static_cast<std::size_t>(i);
    const double want = expected.values[at], got = read(member, tensor, i);
    const double size = std::abs(want) + typical + (expected.cancels.empty() ? 0 : expected.cancels[at]);
    if (!(std::abs(got - want) <= tolerance * size)) {
      return tensor.name + "[" + std::to_string(i) + "] is " + std::to_string(got) + ", expected " +
             std::to_string(want);
    }
  }
  return "";
}

template <class Case>
class Checker {
 public:
  Checker(const Case& row_case, std::mt19937_64& random)
      : case_(row_case), memory_(static_cast<std::size_t>(row_case.bytes * kMembers), std::byte{0xff}) {
    std::normal_distribution<float> normal;
    for (int m = 0; m < kMembers; ++m) {
      for (const RowTensor& tensor : case_.tensors) {
        if (tensor.role != Role::input) continue;
        const bool shifted = tensor.name == "term0" || tensor.name == "x" || tensor.name == "gain";
        const float mean = shifted ? 1.5f : tensor.name == "dy" ? 0.25f : 0.0f;
        for (std::int64_t i = 0; i < tensor.size; ++i) {
          write(member(memory_, m), tensor, i, tensor.name == "eps" ? case_.shape.eps : 0.5f * normal(random) + mean);
        }
      }
      write_statistics(case_, member(memory_, m));
    }
  }

  // Empty, or what is wrong.
  std::string run() {
    const std::vector<std::byte> first = run_once(std::byte{0xff}), second = run_once(std::byte{0x41});
    for (int m = 0; m < kMembers; ++m) {
      if (const std::string fault = untouched(first, m); !fault.empty()) return fault;
      if (m == kIdle) continue;
      const Expectation expectation = expect(case_, member(memory_, m));
      for (const RowTensor& tensor : case_.tensors) {
        if (tensor.role != Role::output) continue;
        const std::string fault = compare(member(first, m), tensor, expectation.at(tensor.name));
        if (!fault.empty()) return "member " + std::to_string(m) + ": " + fault;
        if (std::memcmp(member(first, m) + tensor.offset, member(second, m) + tensor.offset,
                        static_cast<std::size_t>(tensor.bytes())) != 0) {
          return tensor.name + " differs between two runs";
        }
      }
    }
    return "";
  }

 private:
  template <class Bytes>
  auto member(Bytes& bytes, int m) const {
    return bytes.data() + m * case_.bytes;
  }

  std::vector<std::byte> run_once(std::byte scratch_poison) {
    std::vector<std::byte> memory = memory_;
    for (int m = 0; m < kMembers; ++m) {
      for (const RowTensor& tensor : case_.tensors) {
        if (tensor.role != Role::scratch) continue;
        std::memset(member(memory, m) + tensor.offset, static_cast<int>(scratch_poison),
                    static_cast<std::size_t>(tensor.bytes()));
      }
    }
    DeviceMemory device(memory.size()), active(kMembers);
    const std::uint8_t flags[kMembers] = {1, 0, 1};
    check_cuda(cudaMemcpy(device.data(), memory.data(), memory.size(), cudaMemcpyHostToDevice), "inputs");
    check_cuda(cudaMemcpy(active.data(), flags, kMembers, cudaMemcpyHostToDevice), "flags");
    const cuda::Members members{device.data(), case_.bytes, kMembers, reinterpret_cast<std::uint8_t*>(active.data())};
    check_cuda(static_cast<cudaError_t>(launch(case_, members, nullptr)), "launch of " + describe(case_));
    check_cuda(cudaDeviceSynchronize(), "run of " + describe(case_));
    check_cuda(cudaMemcpy(memory.data(), device.data(), memory.size(), cudaMemcpyDeviceToHost), "outputs");
    return memory;
  }

  // Bytes that are no output and no scratch, and all bytes of the member that is not active, are as they were.
  std::string untouched(const std::vector<std::byte>& after, int m) const {
    std::vector<bool> may_change(static_cast<std::size_t>(case_.bytes), false);
    for (const RowTensor& tensor : case_.tensors) {
      if (tensor.role == Role::input || m == kIdle) continue;
      for (std::int64_t i = 0; i < tensor.bytes(); ++i) may_change[static_cast<std::size_t>(tensor.offset + i)] = true;
    }
    for (std::int64_t i = 0; i < case_.bytes; ++i) {
      if (may_change[static_cast<std::size_t>(i)] || member(after, m)[i] == member(memory_, m)[i]) continue;
      return "member " + std::to_string(m) + ": byte " + std::to_string(i) + " was written";
    }
    return "";
  }

  const Case& case_;
  std::vector<std::byte> memory_;
};

std::vector<RowShape> shapes_to_check(CheckExtent extent) {
  std::vector<RowShape> result;
  const bool whole = extent == CheckExtent::whole;
  const auto add = [&](RowShape shape) {
    for (const RowNormName norm : {RowNormName::layer, RowNormName::rms, RowNormName::scale}) {
      for (const RowTypes types : {RowTypes::f32, RowTypes::bf16, RowTypes::f32_stream_bf16_branch}) {
        shape.norm = norm;
        shape.types = types;
        result.push_back(shape);
      }
    }
  };
  const std::vector<std::int64_t> widths =
      whole ? std::vector<std::int64_t>{1,    16,   31,   33,   64,   100,  256,  320,   768,  1000,
                                        1023, 1024, 1600, 2048, 4097, 5120, 8192, 12288, 65536}
            : std::vector<std::int64_t>{16, 33, 1000, 2048};
  for (const std::int64_t width : widths) {
    for (const int extra : {0, 1, 3}) {
      const std::int64_t rows = !whole ? 9 : width > 8192 ? 3 : width > 4096 ? 5 : width > 300 ? 37 : 203;
      add({.rows = rows, .width = width, .extra = extra});
    }
  }
  for (const std::int64_t width : {1023, 256}) {
    if (!whole && width == 256) break;
    for (const int extra : {0, 1, 3}) {
      add({.rows = 19, .width = width, .extra = extra, .place = RowPlace::over_an_input});
      add({.rows = 19, .width = width, .extra = extra, .alignment = RowAlignment::off_by_four});
      add({.rows = 19, .width = width, .extra = extra, .affine = RowAffine::none});
    }
    add({.rows = 19, .width = width, .eps = 100.0f});  // ScaleNorm: rows shorter than eps
  }
  if (!whole) return result;
  add({.rows = 1, .width = 768});
  add({.rows = 9001, .width = 64});  // more rows than blocks can take at once
  add({.rows = 4500, .width = 256, .extra = 1});
  for (const std::int64_t counted : {1, 16, 40, 255}) {
    for (const RowTypes types : {RowTypes::f32, RowTypes::bf16}) {
      result.push_back({.norm = RowNormName::rms, .types = types, .rows = 21, .width = 256, .counted = counted});
    }
  }
  return result;
}

}  // namespace

int check_row_norms(CheckExtent extent, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  int failures = 0, cases = 0;
  const auto check = [&](const auto& row_case) {
    ++cases;
    const std::string fault = Checker(row_case, random).run();
    if (fault.empty()) return;
    ++failures;
    std::printf("FAILED %s: %s\n", describe(row_case).c_str(), fault.c_str());
  };
  for (const RowShape& shape : shapes_to_check(extent)) {
    check(forward_case(shape));
    check(backward_case(shape));
  }
  std::printf("check: %d cases, %d failed, seed %llu\n", cases, failures, static_cast<unsigned long long>(seed));
  return failures;
}

}  // namespace norma::bench
