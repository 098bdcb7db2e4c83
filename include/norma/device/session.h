// A plan brought to life on the CPU: one arena, a team of threads, and the step replayed as often as asked.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "norma/core/arena.h"
#include "norma/graph/plan.h"

namespace norma {

class Crew;

// The first value of a step that holds a NaN or an infinity.
struct NonFinite {
  int member = 0;
  int step = 0;            // index into Plan::steps()
  std::string wire;        // the value's name
  std::int64_t index = 0;  // of the element
  double value = 0;
};

class Session {
 public:
  struct Options {
    int members = 1;
    int threads = 0;  // 0: all cores this process may use
  };

  Session(std::shared_ptr<const Plan> plan, Options options);
  explicit Session(std::shared_ptr<const Plan> plan) : Session(std::move(plan), Options{}) {}
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) = delete;

  const Plan& plan() const { return *plan_; }
  int members() const { return members_; }
  int threads() const;

  // One step of every member. Few members have a group of threads each, many spread over the threads; the bits of a
  // member's results depend on neither. A run that does not watch leaves nothing
  // readable in the watched outputs.
  void run(Watching watching = Watching::yes);

  // The same step one node at a time, stopping at the first output that is not finite. What is only watched
  // is left out. Slow; for diagnosis.
  std::optional<NonFinite> run_checked();
  std::optional<NonFinite> run_checked(int member);  // of this one alone, active or not

  // Members that are not active are left out of run(); they keep their memory. All start active.
  void set_active(int member, bool active);

  // A named tensor of one member, by its element type; throws Error when name, type or size do not fit.
  template <typename T>
  std::span<T> tensor(std::string_view name, int member = 0) {
    const Slot& slot = checked_slot(name, member, dtype_of<T>());
    return {reinterpret_cast<T*>(base(member) + slot.offset), static_cast<std::size_t>(slot.type.shape.elements())};
  }
  // The raw bytes of a tensor of any type.
  std::span<std::byte> bytes(std::string_view name, int member = 0);
  template <typename T>
  void write(std::string_view name, std::span<const T> values, int member = 0) {
    const std::span<T> target = tensor<T>(name, member);
    check_size(name, target.size(), values.size());
    std::copy(values.begin(), values.end(), target.begin());
  }
  // Writes the same values to every member.
  template <typename T>
  void write_all(std::string_view name, std::span<const T> values) {
    for (int member = 0; member < members_; ++member) write<T>(name, values, member);
  }

 private:
  std::byte* base(int member) { return arena_.data() + member * member_stride_; }
  const Slot& checked_slot(std::string_view name, int member, DType dtype) const;
  void check_member(int member) const;
  void check_size(std::string_view name, std::size_t expected, std::size_t given) const;

  std::shared_ptr<const Plan> plan_;
  int members_;
  std::vector<int> active_;  // in order
  std::int64_t member_stride_;
  std::vector<std::byte*> bases_;  // of the active members, while they run
  Arena arena_;
  std::unique_ptr<Crew> crew_;
};

}  // namespace norma
