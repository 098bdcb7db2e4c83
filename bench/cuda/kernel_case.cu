#include "bench/cuda/kernel_case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "bench/cuda/device.h"

namespace norma::bench {
namespace {

constexpr int kMembers = 3, kIdle = 1;  // the member that is not active

std::byte* member_at(std::vector<std::byte>& memory, const KernelCase& kernel_case, int member) {
  return memory.data() + member * kernel_case.bytes;
}
const std::byte* member_at(const std::vector<std::byte>& memory, const KernelCase& kernel_case, int member) {
  return memory.data() + member * kernel_case.bytes;
}

std::vector<std::byte> run_once(const KernelCase& kernel_case, std::vector<std::byte> memory, int poison) {
  for (int m = 0; m < kMembers; ++m) {
    for (const CaseTensor& tensor : kernel_case.tensors) {
      if (tensor.use != TensorUse::scratch && tensor.use != TensorUse::output) continue;
      if (m == kIdle) continue;
      std::memset(member_at(memory, kernel_case, m) + tensor.offset, poison, static_cast<std::size_t>(tensor.bytes()));
    }
  }
  DeviceMemory device(memory.size()), active(kMembers);
  const std::uint8_t flags[kMembers] = {1, 0, 1};
  check_cuda(cudaMemcpy(device.data(), memory.data(), memory.size(), cudaMemcpyHostToDevice), "inputs");
  check_cuda(cudaMemcpy(active.data(), flags, kMembers, cudaMemcpyHostToDevice), "flags");
  const cuda::Members members{device.data(), kernel_case.bytes, kMembers,
                              reinterpret_cast<std::uint8_t*>(active.data())};
  check_cuda(static_cast<cudaError_t>(kernel_case.launch(members, nullptr)), "launch of " + kernel_case.name);
  check_cuda(cudaDeviceSynchronize(), "run of " + kernel_case.name);
  check_cuda(cudaMemcpy(memory.data(), device.data(), memory.size(), cudaMemcpyDeviceToHost), "outputs");
  return memory;
}

// Bytes that are no output and no scratch, and all bytes of the member that is not active, are as they were.
std::string untouched(const KernelCase& kernel_case, const std::vector<std::byte>& before,
                      const std::vector<std::byte>& after, int m) {
  std::vector<bool> may_change(static_cast<std::size_t>(kernel_case.bytes), false);
  for (const CaseTensor& tensor : kernel_case.tensors) {
    if (tensor.use == TensorUse::input || m == kIdle) continue;
    for (std::int64_t i = 0; i < tensor.bytes(); ++i) may_change[static_cast<std::size_t>(tensor.offset + i)] = true;
  }
  const std::byte *was = member_at(before, kernel_case, m), *is = member_at(after, kernel_case, m);
  for (std::int64_t i = 0; i < kernel_case.bytes; ++i) {
    if (may_change[static_cast<std::size_t>(i)] || was[i] == is[i]) continue;
    return "member " + std::to_string(m) + ": byte " + std::to_string(i) + " was written";
  }
  return "";
}

// NaN where NaN or an infinity of one sign is wanted; infinities as such.
std::string compare(const std::byte* member, const CaseTensor& tensor, const Wanted& wanted) {
  double largest = wanted.cancels;
  for (const double v : wanted.values) largest = std::isfinite(v) ? std::max(largest, std::abs(v)) : largest;
  for (std::int64_t i = 0; i < tensor.size; ++i) {
    const double want = wanted.values[static_cast<std::size_t>(i)], got = read_element(member, tensor, i);
    const bool right = std::isnan(want)   ? !std::isfinite(got)
                       : std::isinf(want) ? got == want || std::isnan(got)
                                          : std::abs(got - want) <= wanted.tolerance * largest;
    if (right) continue;
    return tensor.name + "[" + std::to_string(i) + "] is " + std::to_string(got) + ", expected " +
           std::to_string(want) + ", largest " + std::to_string(largest) + ", off by " +
           std::to_string(std::abs(got - want) / largest / wanted.tolerance) + " tolerances";
  }
  return "";
}

__global__ void fill_with_noise(std::uint32_t* to, std::int64_t words, bool bf16, std::uint32_t salt) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < words; i += stride) {
    std::uint32_t bits = (static_cast<std::uint32_t>(i) ^ salt) * 2654435761u;
    bits = (bits ^ (bits >> 15)) * 2246822519u;
    bits = (bits ^ (bits >> 13)) * 3266489917u;
    bits ^= bits >> 16;
    // Sign and mantissa are random, the exponent is that of [0.5, 1).
    to[i] = bf16 ? (bits & 0x807f807fu) | 0x3f003f00u : (bits & 0x807fffffu) | 0x3f000000u;
  }
}

// Floating tensors get noise, other noise for every member; integers 0.
void fill_on_device(const KernelCase& kernel_case, std::byte* member, int index) {
  std::uint32_t salt = static_cast<std::uint32_t>(index) * 0x9e3779b9u;
  for (const CaseTensor& tensor : kernel_case.tensors) {
    salt += 0x7f4a7c15u;
    if (tensor.type == TensorType::i32) {
      check_cuda(cudaMemset(member + tensor.offset, 0, static_cast<std::size_t>(tensor.bytes())), "zeros");
    } else {
      fill_with_noise<<<1024, 256>>>(reinterpret_cast<std::uint32_t*>(member + tensor.offset), tensor.bytes() / 4,
                                     tensor.type == TensorType::bf16, salt);
    }
  }
}

bool is_idle(int member) { return member % 3 == kIdle; }

// The memory of all members after a launch over noise, and `poison` in outputs and scratch.
std::vector<std::byte> run_on_noise(const KernelCase& kernel_case, int members, int poison) {
  const auto count = static_cast<std::size_t>(members);
  DeviceMemory device(static_cast<std::size_t>(kernel_case.bytes) * count), active(count);
  std::vector<std::uint8_t> flags;
  for (int m = 0; m < members; ++m) {
    std::byte* const member = device.data() + m * kernel_case.bytes;
    flags.push_back(is_idle(m) ? 0 : 1);
    fill_on_device(kernel_case, member, m);
    for (const CaseTensor& tensor : kernel_case.tensors) {
      if (tensor.use != TensorUse::output && tensor.use != TensorUse::scratch) continue;
      check_cuda(cudaMemset(member + tensor.offset, poison, static_cast<std::size_t>(tensor.bytes())), "poison");
    }
  }
  check_cuda(cudaMemcpy(active.data(), flags.data(), count, cudaMemcpyHostToDevice), "flags");
  const cuda::Members all{device.data(), kernel_case.bytes, members, reinterpret_cast<std::uint8_t*>(active.data())};
  check_cuda(static_cast<cudaError_t>(kernel_case.launch(all, nullptr)), "launch of " + kernel_case.name);
  check_cuda(cudaDeviceSynchronize(), "run of " + kernel_case.name);
  std::vector<std::byte> memory(device.size());
  check_cuda(cudaMemcpy(memory.data(), device.data(), memory.size(), cudaMemcpyDeviceToHost), "outputs");
  return memory;
}

}  // namespace

double read_element(const std::byte* member, const CaseTensor& tensor, std::int64_t index) {
  const std::byte* const at = member + tensor.offset + index * tensor.element_bytes();
  if (tensor.type == TensorType::i32) {
    std::int32_t value;
    std::memcpy(&value, at, 4);
    return value;
  }
  std::uint32_t bits = 0;
  if (tensor.type == TensorType::bf16) {
    std::uint16_t half;
    std::memcpy(&half, at, 2);
    bits = static_cast<std::uint32_t>(half) << 16;
  } else {
    std::memcpy(&bits, at, 4);
  }
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

void write_element(std::byte* member, const CaseTensor& tensor, std::int64_t index, double value) {
  std::byte* const at = member + tensor.offset + index * tensor.element_bytes();
  if (tensor.type == TensorType::i32) {
    const std::int32_t whole = static_cast<std::int32_t>(value);
    std::memcpy(at, &whole, 4);
    return;
  }
  const float single = static_cast<float>(value);
  std::uint32_t bits;
  std::memcpy(&bits, &single, 4);
  if (tensor.type == TensorType::bf16) {  // to the nearest, ties to even
    const std::uint32_t rounded = std::isfinite(single) ? bits + 0x7fffu + ((bits >> 16) & 1u) : bits | 0x400000u;
    const std::uint16_t half = static_cast<std::uint16_t>((std::isinf(single) ? bits : rounded) >> 16);
    std::memcpy(at, &half, 2);
  } else {
    std::memcpy(at, &bits, 4);
  }
}

std::vector<double> read_tensor(const std::byte* member, const CaseTensor& tensor) {
  std::vector<double> values(static_cast<std::size_t>(tensor.size));
  for (std::int64_t i = 0; i < tensor.size; ++i) {
    values[static_cast<std::size_t>(i)] = read_element(member, tensor, i);
  }
  return values;
}

void write_tensor(std::byte* member, const CaseTensor& tensor, const std::vector<double>& values) {
  for (std::int64_t i = 0; i < tensor.size; ++i) {
    write_element(member, tensor, i, values[static_cast<std::size_t>(i)]);
  }
}

std::int64_t KernelCase::add(const std::string& tensor, TensorUse use, TensorType type, std::int64_t size,
                             std::int64_t shift) {
  tensors.push_back({tensor, use, type, bytes + shift, size});
  bytes = (tensors.back().offset + tensors.back().bytes() + 255) / 256 * 256;
  return tensors.back().offset;
}

const CaseTensor& KernelCase::find(const std::string& tensor) const {
  for (const CaseTensor& candidate : tensors) {
    if (candidate.name == tensor) return candidate;
  }
  throw std::logic_error("no tensor " + tensor + " in " + name);
}

std::string check_case(const KernelCase& kernel_case, std::mt19937_64& random) {
  std::vector<std::byte> memory(static_cast<std::size_t>(kernel_case.bytes * kMembers), std::byte{0xff});
  for (int m = 0; m < kMembers; ++m) kernel_case.fill(member_at(memory, kernel_case, m), random);
  const std::vector<std::byte> first = run_once(kernel_case, memory, 0xff),
                               second = run_once(kernel_case, memory, 0x41);
  for (int m = 0; m < kMembers; ++m) {
    if (const std::string fault = untouched(kernel_case, memory, first, m); !fault.empty()) return fault;
    if (m == kIdle) continue;
    const std::map<std::string, Wanted> wanted = kernel_case.expect(member_at(memory, kernel_case, m));
    for (const CaseTensor& tensor : kernel_case.tensors) {
      if (tensor.use == TensorUse::input || tensor.use == TensorUse::scratch) continue;
      const std::string fault = compare(member_at(first, kernel_case, m), tensor, wanted.at(tensor.name));
      if (!fault.empty()) return "member " + std::to_string(m) + ": " + fault;
      if (std::memcmp(member_at(first, kernel_case, m) + tensor.offset,
                      member_at(second, kernel_case, m) + tensor.offset,
                      static_cast<std::size_t>(tensor.bytes())) != 0) {
        return tensor.name + " differs between two runs";
      }
    }
  }
  return "";
}

std::string compare_cases(const KernelCase& kernel_case, const KernelCase& trusted, int members) {
  constexpr int kPoison = 0xff, kOther = 0x41;
  const std::vector<std::byte> wanted = run_on_noise(trusted, members, kPoison),
                               first = run_on_noise(kernel_case, members, kPoison),
                               second = run_on_noise(kernel_case, members, kOther);
  for (int m = 0; m < members; ++m) {
    for (const CaseTensor& tensor : kernel_case.tensors) {
      if (tensor.use != TensorUse::output) continue;
      const std::byte *const member = member_at(first, kernel_case, m), *const once = member + tensor.offset,
                             *const again = member_at(second, kernel_case, m) + tensor.offset;
      const std::string which = "member " + std::to_string(m) + ": ";
      if (is_idle(m)) {
        const auto is_poison = [](std::byte byte) { return byte == std::byte{kPoison}; };
        if (!std::all_of(once, once + tensor.bytes(), is_poison)) return which + tensor.name + " was written";
        continue;
      }
      const double tolerance = tensor.type == TensorType::bf16 ? 0x1p-7 : 0x1p-14;
      const Wanted same{read_tensor(member_at(wanted, trusted, m), trusted.find(tensor.name)), tolerance};
      if (const std::string fault = compare(member, tensor, same); !fault.empty()) return which + fault;
      if (std::memcmp(once, again, static_cast<std::size_t>(tensor.bytes())) != 0)
        return which + tensor.name + " differs between two runs";
    }
  }
  return "";
}

double time_case(const KernelCase& kernel_case, int members) {
  constexpr int kWarmUps = 2, kRuns = 9, kLaunches = 10;
  DeviceMemory memory(static_cast<std::size_t>(kernel_case.bytes * members));
  for (int m = 0; m < members; ++m) fill_on_device(kernel_case, memory.data() + m * kernel_case.bytes, m);
  const cuda::Members all{memory.data(), kernel_case.bytes, members, nullptr};
  cudaEvent_t begin, end;
  check_cuda(cudaEventCreate(&begin), "event");
  check_cuda(cudaEventCreate(&end), "event");
  std::vector<double> times;
  for (int i = -kWarmUps; i < kRuns; ++i) {
    check_cuda(cudaEventRecord(begin), "event");
    for (int launch = 0; launch < kLaunches; ++launch) {
      check_cuda(static_cast<cudaError_t>(kernel_case.launch(all, nullptr)), "launch of " + kernel_case.name);
    }
    check_cuda(cudaEventRecord(end), "event");
    check_cuda(cudaEventSynchronize(end), "timing of " + kernel_case.name);
    float ms = 0;
    check_cuda(cudaEventElapsedTime(&ms, begin, end), "event");
    if (i >= 0) times.push_back(static_cast<double>(ms) / kLaunches);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  std::sort(times.begin(), times.end());
  return times[kRuns / 2];
}

}  // namespace norma::bench
