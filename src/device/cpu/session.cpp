#include "norma/device/session.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "device/cpu/crew.h"
#include "norma/core/error.h"
#include "norma/core/machine.h"

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

double element(const std::byte* data, DType dtype, std::int64_t index) {
  switch (dtype) {
    case DType::f32: return reinterpret_cast<const float*>(data)[index];
    case DType::f64: return reinterpret_cast<const double*>(data)[index];
    case DType::bf16: return static_cast<float>(reinterpret_cast<const BFloat16*>(data)[index]);
    case DType::i32: return reinterpret_cast<const std::int32_t*>(data)[index];
  }
  return 0;
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

// Refuses before anything is allocated, and says where the memory would go.
void check_memory(const Plan& plan, int members, std::int64_t stride) {
  const std::int64_t available = available_memory();
  if (stride <= available / members) return;
  const std::vector<int> largest = plan.largest_values(1);
  const Value* value = largest.empty() ? nullptr : &plan.values()[static_cast<std::size_t>(largest[0])];
  fail("the plan needs {} for each of {} member{} but this machine has {} available; the largest tensor is {}",
       describe_bytes(stride), members, members == 1 ? "" : "s", describe_bytes(available),
       value == nullptr ? "none" : "'" + value->name + "' " + value->type.str());
}

}  // namespace

Session::Session(std::shared_ptr<const Plan> plan, Options options)
    : plan_(std::move(plan)), members_(options.members) {
  if (options.members < 1) fail("a session needs at least one member, but {} were asked for", options.members);
  if (options.threads < 0) fail("a session cannot have {} threads; 0 means all cores", options.threads);
  const int threads = options.threads == 0 ? machine().cores : options.threads;
  // Two lines of distance keep neighbouring members out of each other's cache lines and prefetches.
  member_stride_ = align_up(plan_->member_bytes()) + 2 * kArenaAlignment;
  check_memory(*plan_, members_, member_stride_);
  arena_ = Arena(member_stride_ * members_);
  crew_ = std::make_unique<Crew>(plan_, threads);
  for (int member = 0; member < members_; ++member) active_.push_back(member);
  for (const Value& value : plan_->values()) {
    if (value.role != Role::constant) continue;
    const std::int64_t offset = plan_->slot(value.name).offset;
    for (int member = 0; member < members_; ++member)
      std::memcpy(base(member) + offset, value.data->data(), value.data->size());
  }
}

Session::~Session() = default;
Session::Session(Session&&) noexcept = default;

int Session::threads() const { return crew_->threads(); }

void Session::run(Watching watching) {
  bases_.clear();
  for (const int member : active_) bases_.push_back(base(member));
  crew_->run(bases_, watching);
}

std::optional<NonFinite> Session::run_checked() {
  for (const int member : active_) {
    if (auto found = run_checked(member)) return found;
  }
  return std::nullopt;
}

std::optional<NonFinite> Session::run_checked(int member) {
  check_member(member);
  for (std::size_t index = 0; index < plan_->steps().size(); ++index) {
    const Step& step = plan_->steps()[index];
    if (step.only_watched) continue;  // a probe shows what others have done
    crew_->run_step(step, base(member));
    const Node& node = plan_->nodes()[static_cast<std::size_t>(step.node)];
    for (std::size_t out = 0; out < node.outputs.size(); ++out) {
      const std::int64_t offset = step.offsets[static_cast<std::size_t>(step.inputs) + out];
      if (offset < 0) continue;
      const Value& value = plan_->values()[static_cast<std::size_t>(node.outputs[out])];
      const std::int64_t bad = first_non_finite(base(member) + offset, value.type);
      if (bad < 0) continue;
      return NonFinite{member, static_cast<int>(index), value.name, bad,
                       element(base(member) + offset, value.type.dtype, bad)};
    }
  }
  return std::nullopt;
}

void Session::set_active(int member, bool active) {
  check_member(member);
  const auto found = std::find(active_.begin(), active_.end(), member);
  if (active && found == active_.end()) {
    active_.insert(std::upper_bound(active_.begin(), active_.end(), member), member);
  } else if (!active && found != active_.end()) {
    active_.erase(found);
  }
}

void Session::check_member(int member) const {
  if (member < 0 || member >= members_) fail("member {} asked for, but the session has {}", member, members_);
}

std::span<std::byte> Session::bytes(std::string_view name, int member) {
  const Slot& slot = checked_slot(name, member, plan_->slot(name).type.dtype);
  return {base(member) + slot.offset, static_cast<std::size_t>(slot.type.bytes())};
}

const Slot& Session::checked_slot(std::string_view name, int member, DType dtype) const {
  const Slot& slot = plan_->slot(name);
  if (member < 0 || member >= members_)
    fail("'{}': member {} asked for, but the session has {}", name, member, members_);
  if (slot.type.dtype != dtype) fail("'{}' is {} but was accessed as {}", name, slot.type.str(), name_of(dtype));
  if (slot.offset < 0) fail("'{}' has no memory in this plan", name);
  return slot;
}

void Session::check_size(std::string_view name, std::size_t expected, std::size_t given) const {
  if (expected != given) fail("'{}' has {} elements but {} were given", name, expected, given);
}

}  // namespace norma
