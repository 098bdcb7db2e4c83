#include "device/cpu/cpu_session.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "device/memory_check.h"
#include "norma/core/error.h"
#include "norma/core/machine.h"
#include "norma/device/cpu/backend.h"
#include "norma/device/cpu/session.h"

namespace norma {
namespace {

template <typename T>
std::int64_t first_non_finite(const std::byte* data, std::int64_t count) {
  const T* values = reinterpret_cast<const T*>(data);
  for (std::int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(static_cast<double>(static_cast<float>(values[i])))) return i;
  }
  return -1;
}
template <>
std::int64_t first_non_finite<double>(const std::byte* data, std::int64_t count) {
  const double* values = reinterpret_cast<const double*>(data);
  for (std::int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(values[i])) return i;
  }
  return -1;
}

std::int64_t first_non_finite(const std::byte* data, const Type& type) {
  const std::int64_t count = type.shape.elements();
  switch (type.dtype) {
    case DType::f32: return first_non_finite<float>(data, count);
    case DType::f64: return first_non_finite<double>(data, count);
    case DType::bf16: return first_non_finite<BFloat16>(data, count);
    case DType::i32: return -1;
  }
  return -1;
}

// Two lines of distance keep neighbouring members out of each other's cache lines and prefetches.
std::int64_t stride_of_members(const Plan& plan) { return align_up(plan.member_bytes()) + 2 * kArenaAlignment; }

// Throws before anything is taken for members that do not fit, be it a number for each of them.
std::shared_ptr<const Plan> for_the_cpu(std::shared_ptr<const Plan> plan, int members) {
  for (const Step& step : plan->steps()) {
    if (dynamic_cast<const CpuProgram*>(step.kernel.get()) == nullptr)
      throw InternalError("internal error: the plan was made for another device than the CPU");
  }
  if (members > 0) check_memory(*plan, members, stride_of_members(*plan), available_memory(), "this machine has");
  return plan;
}

int checked_threads(int threads) {
  if (threads < 0) fail("a session cannot have {} threads; 0 means all cores", threads);
  return threads == 0 ? machine().cores : threads;
}

}  // namespace

CpuSession::CpuSession(std::shared_ptr<const Plan> plan, Options options)
    : Session(for_the_cpu(std::move(plan), options.members), options.members),
      member_stride_(stride_of_members(this->plan())),
      arena_(member_stride_ * options.members),
      crew_(shared_plan(), checked_threads(options.threads)) {
  for (const Value& value : this->plan().values()) {
    if (value.role != Role::constant) continue;
    const std::int64_t offset = this->plan().slot(value.name).offset;
    for (int member = 0; member < members(); ++member) put(member, offset, *value.data);
  }
}

std::int64_t CpuSession::memory_bytes() const {
  return plan().member_bytes() * members() + worker_bytes(plan()) * threads();
}

void CpuSession::use_threads(int threads) { crew_.use_threads(checked_threads(threads)); }

void CpuSession::enqueue(std::span<const int> active, Watching watching) {
  bases_.clear();
  for (const int member : active) bases_.push_back(base(member));
  crew_.run(bases_, watching);
}

std::optional<NonFinite> CpuSession::check(int member) {
  for (std::size_t index = 0; index < plan().steps().size(); ++index) {
    const Step& step = plan().steps()[index];
    if (step.only_watched) continue;  // a probe shows what others have done
    crew_.run_step(step, base(member));
    const Node& node = plan().nodes()[static_cast<std::size_t>(step.node)];
    for (std::size_t out = 0; out < node.outputs.size(); ++out) {
      const std::int64_t offset = step.offsets[static_cast<std::size_t>(step.inputs) + out];
      if (offset < 0) continue;
      const Value& value = plan().values()[static_cast<std::size_t>(node.outputs[out])];
      const std::int64_t bad = first_non_finite(base(member) + offset, value.type);
      if (bad < 0) continue;
      return NonFinite{member, static_cast<int>(index), value.name, bad,
                       element(member, offset, value.type.dtype, bad)};
    }
  }
  return std::nullopt;
}

void CpuSession::put(int member, std::int64_t offset, std::span<const std::byte> bytes) {
  if (!bytes.empty()) std::memcpy(base(member) + offset, bytes.data(), bytes.size());
}

void CpuSession::get(int member, std::int64_t offset, std::span<std::byte> bytes) {
  if (!bytes.empty()) std::memcpy(bytes.data(), base(member) + offset, bytes.size());
}

std::unique_ptr<Session> make_cpu_session(std::shared_ptr<const Plan> plan, Session::Options options) {
  return std::make_unique<CpuSession>(std::move(plan), options);
}

}  // namespace norma
