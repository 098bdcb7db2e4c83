// A session on the CPU: one arena, and a crew of threads.
#pragma once

#include <span>

#include "device/cpu/crew.h"
#include "norma/core/arena.h"
#include "norma/device/session.h"

namespace norma {

class CpuSession final : public Session {
 public:
  CpuSession(std::shared_ptr<const Plan> plan, Options options);
  explicit CpuSession(std::shared_ptr<const Plan> plan) : CpuSession(std::move(plan), Options{}) {}

  int threads() const override { return crew_.threads(); }
  std::int64_t memory_bytes() const override;
  void use_threads(int threads) override;

  // The memory itself, for tests and benches of kernels.
  template <typename T>
  std::span<T> tensor(std::string_view name, int member = 0) {
    const Handle found = handle(name);
    check_member(found, member);
    check_type(found, dtype_of<T>());
    return {reinterpret_cast<T*>(base(member) + found.offset()), found.elements()};
  }

 private:
  void enqueue(std::span<const int> active, Watching watching) override;
  std::optional<NonFinite> check(int member) override;
  void put(int member, std::int64_t offset, std::span<const std::byte> bytes) override;
  void get(int member, std::int64_t offset, std::span<std::byte> bytes) override;
  std::byte* base(int member) { return arena_.data() + member * member_stride_; }

  std::int64_t member_stride_;
  Arena arena_;
  Crew crew_;
  std::vector<std::byte*> bases_;  // of the active members, while they run
};

}  // namespace norma
