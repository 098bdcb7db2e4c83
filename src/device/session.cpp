// What all devices' sessions share: names, checks and conversions.
#include "norma/device/session.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "norma/core/bf16.h"
#include "norma/core/error.h"

namespace norma {
namespace {

template <typename T>
double element_at(std::span<const std::byte> bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return static_cast<double>(static_cast<std::conditional_t<std::is_same_v<T, BFloat16>, float, T>>(value));
}

}  // namespace

Session::Session(std::shared_ptr<const Plan> plan, int members) : plan_(std::move(plan)), members_(members) {
  if (members < 1) fail("a session needs at least one member, but {} were asked for", members);
  for (int member = 0; member < members_; ++member) active_.push_back(member);
}

std::optional<NonFinite> Session::run_checked() {
  for (const int member : active_) {
    if (auto found = check(member)) return found;
  }
  return std::nullopt;
}

std::optional<NonFinite> Session::run_checked(int member) {
  check_member(member);
  return check(member);
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

bool Session::active(int member) const { return std::binary_search(active_.begin(), active_.end(), member); }

Handle Session::handle(std::string_view name) const {
  const Slot& slot = plan_->slot(name);
  if (slot.offset < 0) fail("'{}' has no memory in this plan", name);
  return {std::string(name), slot};
}

Handle Session::find(std::string_view name) const { return plan_->has_slot(name) ? handle(name) : Handle(); }

void Session::stage(const Handle& tensor, int member, std::span<const std::byte> bytes) {
  check_member(tensor, member);
  if (bytes.size() != tensor.bytes())
    fail("'{}' has {} bytes but {} were given", tensor.name(), tensor.bytes(), bytes.size());
  forget_content(member, tensor.offset());
  put(member, tensor.offset(), bytes);
}

bool Session::has_content(const Handle& tensor, int member, std::uint64_t content) const {
  check_member(tensor, member);
  if (contents_.empty()) return false;
  const auto& of_member = contents_[static_cast<std::size_t>(member)];
  const auto found = of_member.find(tensor.offset());
  return found != of_member.end() && found->second == content;
}

void Session::mark_content(const Handle& tensor, int member, std::uint64_t content) {
  check_member(tensor, member);
  contents_.resize(static_cast<std::size_t>(members_));
  contents_[static_cast<std::size_t>(member)][tensor.offset()] = content;
}

void Session::forget_content(int member, std::int64_t offset) {
  if (!contents_.empty()) contents_[static_cast<std::size_t>(member)].erase(offset);
}

void Session::read(const Handle& tensor, int member, std::span<std::byte> bytes) {
  check_member(tensor, member);
  if (bytes.size() != tensor.bytes())
    fail("'{}' has {} bytes but {} were asked for", tensor.name(), tensor.bytes(), bytes.size());
  get(member, tensor.offset(), bytes);
}

double Session::earlier_number(const Handle& tensor, int member, int runs_ago) {
  NORMA_ASSERT(runs_ago >= 0 && runs_ago <= earlier_runs());
  if (runs_ago == 0) return number(tensor, member);
  check_member(tensor, member);
  const auto as = [&]<typename T>(T value) {
    get_earlier(member, tensor.offset(), std::as_writable_bytes(std::span(&value, 1)), runs_ago);
    return static_cast<double>(value);
  };
  NORMA_ASSERT(tensor.type().dtype == DType::f32 || tensor.type().dtype == DType::f64);
  return tensor.type().dtype == DType::f32 ? as(0.0f) : as(0.0);
}

void Session::get_earlier(int, std::int64_t, std::span<std::byte>, int) {
  throw InternalError("internal error: this session does not keep what earlier runs left");
}

void Session::copy(Session& from, std::span<const std::string> names) {
  if (from.members() != members_)
    fail("tensors of {} members cannot be copied to a session of {}", from.members(), members_);
  std::vector<Copied> tensors;
  for (const std::string& name : names) {
    const Handle to = handle(name), source = from.handle(name);
    if (to.type() != source.type())
      fail("'{}' is {} in one session and {} in the other", name, source.type().str(), to.type().str());
    tensors.push_back({to.offset(), source.offset(), to.bytes()});
    for (int member = 0; member < members_; ++member) forget_content(member, to.offset());
  }
  if (copy_on_device(from, tensors)) return;
  std::vector<std::byte> bytes;
  for (const Copied& tensor : tensors) {
    bytes.resize(tensor.bytes);
    for (int member = 0; member < members_; ++member) {
      from.get(member, tensor.from, bytes);
      put(member, tensor.to, bytes);
    }
  }
}

double Session::number(const Handle& tensor, int member, std::size_t index) {
  check_member(tensor, member);
  if (index >= tensor.elements())
    fail("'{}' has {} elements but element {} was asked for", tensor.name(), tensor.elements(), index);
  return element(member, tensor.offset(), tensor.type().dtype, static_cast<std::int64_t>(index));
}

double Session::element(int member, std::int64_t offset, DType dtype, std::int64_t index) {
  const auto size = static_cast<std::int64_t>(size_of(dtype));
  std::array<std::byte, 8> bytes{};
  const std::span<std::byte> used = std::span(bytes).first(static_cast<std::size_t>(size));
  get(member, offset + index * size, used);
  switch (dtype) {
    case DType::f32: return element_at<float>(used);
    case DType::f64: return element_at<double>(used);
    case DType::bf16: return element_at<BFloat16>(used);
    case DType::i32: return element_at<std::int32_t>(used);
  }
  return 0;
}

void Session::stage_number(const Handle& tensor, int member, double value) {
  if (tensor.elements() == 1) return stage_numbers(tensor, member, std::span(&value, 1));
  stage_numbers(tensor, member, std::vector<double>(tensor.elements(), value));
}

void Session::stage_numbers(const Handle& tensor, int member, std::span<const double> values) {
  if (tensor.type().dtype == DType::f64) return write<double>(tensor, values, member);
  if (values.size() == 1) {
    const float value = static_cast<float>(values[0]);
    return write<float>(tensor, std::span(&value, 1), member);
  }
  std::vector<float> rounded;
  rounded.reserve(values.size());
  for (const double value : values) rounded.push_back(static_cast<float>(value));
  write<float>(tensor, rounded, member);
}

std::vector<double> Session::numbers(const Handle& tensor, int member) {
  if (tensor.type().dtype == DType::f64) return read<double>(tensor, member);
  const std::vector<float> values = read<float>(tensor, member);
  return {values.begin(), values.end()};
}

void Session::check_member(int member) const {
  if (member < 0 || member >= members_) fail("member {} asked for, but the session has {}", member, members_);
}

void Session::check_member(const Handle& tensor, int member) const {
  if (member < 0 || member >= members_)
    fail("'{}': member {} asked for, but the session has {}", tensor.name(), member, members_);
}

void Session::check_type(const Handle& tensor, DType dtype) {
  if (tensor.type().dtype != dtype)
    fail("'{}' is {} but was accessed as {}", tensor.name(), tensor.type().str(), name_of(dtype));
}

void Session::check_elements(const Handle& tensor, std::size_t given) {
  if (tensor.elements() != given)
    fail("'{}' has {} elements but {} were given", tensor.name(), tensor.elements(), given);
}

}  // namespace norma
