#include "norma/device/session.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "device/cpu/team.h"
#include "norma/core/error.h"
#include "norma/core/machine.h"
#include "norma/device/cpu/backend.h"

namespace norma {
namespace {

Call make_call(const Step& step, std::byte* member_base, std::byte* worker_scratch) {
  return {.base = member_base,
          .offsets = step.offsets.data(),
          .inputs = step.inputs,
          .scratch = member_base + step.scratch,
          .worker_scratch = worker_scratch};
}

const std::vector<Phase>& phases(const Step& step) { return static_cast<const CpuProgram&>(*step.kernel).phases; }

bool left_out(const Step& step, Watching watching) { return step.only_watched && watching == Watching::no; }

// All tiles of one member on this thread alone.
void run_member(const Plan& plan, Watching watching, std::byte* member_base, std::byte* worker_scratch) {
  for (const Step& step : plan.steps()) {
    if (left_out(step, watching)) continue;
    const Call call = make_call(step, member_base, worker_scratch);
    for (const Phase& phase : phases(step)) {
      for (std::int64_t tile = 0; tile < phase.tiles; ++tile) phase.run(call, tile);
    }
  }
}

// One thread's share of one member: a contiguous range of each phase's tiles, a barrier after each phase. Phases of one
// tile all belong to worker 0, which needs no barrier between them.
void run_shared(const Plan& plan, Watching watching, std::byte* member_base, std::byte* worker_scratch, Team& team,
                int worker) {
  bool alone = false;  // worker 0 has run ahead since the last barrier
  for (const Step& step : plan.steps()) {
    if (left_out(step, watching)) continue;
    const Call call = make_call(step, member_base, worker_scratch);
    for (const Phase& phase : phases(step)) {
      if (phase.tiles == 1) {
        if (worker == 0) phase.run(call, 0);
        alone = true;
        continue;
      }
      if (alone) team.barrier();
      alone = false;
      const std::int64_t begin = phase.tiles * worker / team.size();
      const std::int64_t end = phase.tiles * (worker + 1) / team.size();
      for (std::int64_t tile = begin; tile < end; ++tile) phase.run(call, tile);
      team.barrier();
    }
  }
}

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
  scratch_stride_ = worker_bytes(*plan_) + 2 * kArenaAlignment;
  worker_scratch_ = Arena(scratch_stride_ * threads);
  team_ = std::make_unique<Team>(threads);
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

int Session::threads() const { return team_->size(); }

void Session::run(Watching watching) {
  Team& team = *team_;
  const int threads = team.size();
  // Whole rounds of one member per thread; what is left over is shared when that keeps more threads busy.
  const int active = static_cast<int>(active_.size());
  int alone = active / threads * threads;
  if (const int left = active - alone; left * 2 > threads) alone = active;
  team.run([&](int worker) {
    std::byte* const scratch = worker_scratch_.data() + worker * scratch_stride_;
    const auto at = [&](int index) { return base(active_[static_cast<std::size_t>(index)]); };
    for (int index = worker; index < alone; index += threads) run_member(*plan_, watching, at(index), scratch);
    for (int index = alone; index < active; ++index) run_shared(*plan_, watching, at(index), scratch, team, worker);
  });
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
    const Call base_call = make_call(step, base(member), nullptr);
    for (const Phase& phase : phases(step)) {
      team_->run([&](int worker) {
        Call call = base_call;
        call.worker_scratch = worker_scratch_.data() + worker * scratch_stride_;
        const std::int64_t begin = phase.tiles * worker / team_->size();
        const std::int64_t end = phase.tiles * (worker + 1) / team_->size();
        for (std::int64_t tile = begin; tile < end; ++tile) phase.run(call, tile);
      });
    }
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
