#include "norma/backends/device.h"

#include "norma/backends/cpu.h"
#include "norma/core/arena.h"
#include "norma/core/error.h"
#include "norma/device/cpu/session.h"
#ifdef NORMA_CUDA
#include "norma/backends/cuda.h"
#include "norma/device/cuda/device.h"
#include "norma/device/cuda/session.h"
#endif

namespace norma {

std::string_view name_of(Device device) {
  switch (device) {
    case Device::automatic: return "auto";
    case Device::cpu: return "cpu";
    case Device::cuda: return "cuda";
  }
  return "";
}

Device parse_device(std::string_view name) {
  for (const Device device : {Device::automatic, Device::cpu, Device::cuda}) {
    if (name == name_of(device)) return device;
  }
  fail("unknown device '{}'; expected auto, cpu or cuda", name);
}

std::string_view name_of(Precision precision) {
  switch (precision) {
    case Precision::f32: return "f32";
    case Precision::tf32: return "tf32";
    case Precision::bf16: return "bf16";
  }
  return "";
}

Precision parse_precision(std::string_view name) {
  for (const Precision precision : {Precision::f32, Precision::tf32, Precision::bf16}) {
    if (name == name_of(precision)) return precision;
  }
  fail("unknown precision '{}'; expected f32, tf32 or bf16", name);
}

void check(Precision precision, Device device, DType dtype) {
  if (precision == Precision::f32 || resolve(device, dtype) == Device::cuda) return;
  const std::string reason = device == Device::cpu ? "the device is cpu"
                             : dtype == DType::f64 ? "the model is f64"
                                                   : why_not(Device::cuda);
  fail("train.precision is {}, which only a GPU computes, but {}; use f32", name_of(precision), reason);
}

std::string why_not(Device device) {
  if (device != Device::cuda) return "";
#ifdef NORMA_CUDA
  return cuda::presence().usable ? "" : cuda::presence().why_not;
#else
  return "this norma was built without CUDA";
#endif
}

Device resolve(Device device, DType dtype) {
  if (device == Device::cpu || dtype == DType::f64) return Device::cpu;
  const std::string reason = why_not(Device::cuda);
  if (reason.empty()) return Device::cuda;
  if (device == Device::cuda) fail("device is cuda, but {}", reason);
  return Device::cpu;
}

std::string describe(Device device) {
#ifdef NORMA_CUDA
  if (device == Device::cuda && cuda::presence().usable) return "cuda (" + cuda::presence().name + ")";
#endif
  return std::string(name_of(device));
}

std::int64_t available_memory(Device device) {
#ifdef NORMA_CUDA
  if (resolve(device) == Device::cuda) return cuda::memory().free_bytes;
#else
  resolve(device);
#endif
  return available_memory();
}

const Backend& backend(Device device, DType dtype) {
#ifdef NORMA_CUDA
  if (resolve(device, dtype) == Device::cuda) return cuda_backend();
#else
  resolve(device, dtype);
#endif
  return cpu_backend();
}

std::unique_ptr<Session> make_session(std::shared_ptr<const Plan> plan, Session::Options options) {
#ifdef NORMA_CUDA
  if (plan->device() == "cuda") return make_cuda_session(std::move(plan), options);
#endif
  return make_cpu_session(std::move(plan), options);
}

}  // namespace norma
