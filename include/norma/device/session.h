// A plan brought to life on a device: the memory of its members and the step, replayed as often as asked. The host
// holds no pointer into it: tensors are staged before a run and read after it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "norma/graph/plan.h"

namespace norma {

// The first value of a step that holds a NaN or an infinity.
struct NonFinite {
  int member = 0;
  int step = 0;            // index into Plan::steps()
  std::string wire;        // the value's name
  std::int64_t index = 0;  // of the element
  double value = 0;
};

// A named tensor of a session's plan, found once and used at every step.
class Handle {
 public:
  Handle() = default;
  Handle(std::string name, const Slot& slot) : name_(std::move(name)), slot_(&slot) {}

  explicit operator bool() const { return slot_ != nullptr; }
  const std::string& name() const { return name_; }
  const Type& type() const { return slot_->type; }
  std::int64_t offset() const { return slot_->offset; }
  std::size_t bytes() const { return static_cast<std::size_t>(type().bytes()); }
  std::size_t elements() const { return static_cast<std::size_t>(type().shape.elements()); }

 private:
  std::string name_;
  const Slot* slot_ = nullptr;  // of the plan, which the session keeps
};

class Session {
 public:
  struct Options {
    int members = 1;
    int threads = 0;    // of the host; 0: all cores this process may use
    bool tf32 = false;  // whether a GPU may round the factors of f32 products to 11 bits
  };

  virtual ~Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const Plan& plan() const { return *plan_; }
  int members() const { return members_; }
  virtual int threads() const = 0;                // of the host
  virtual std::int64_t memory_bytes() const = 0;  // that all members and threads take on the device
  // Whether run() returns before the step is done, and what is staged meanwhile waits for the next one.
  virtual bool runs_ahead() const { return false; }
  // From the next run on. A device that has no threads of the host leaves it at that.
  virtual void use_threads(int /*threads*/) {}

  // One step of every active member. The bits of a member's results depend neither on the number of members nor on that
  // of threads. A run that does not watch leaves nothing readable in the watched outputs. May return before the step is
  // done; whoever reads waits for it.
  void run(Watching watching = Watching::yes) { enqueue(active_, watching); }

  // The same step one node at a time, stopping at the first output that is not finite. What is only watched
  // is left out. Slow; for diagnosis.
  std::optional<NonFinite> run_checked();
  std::optional<NonFinite> run_checked(int member);  // of this one alone, active or not

  // Members that are not active are left out of run(); they keep their memory. All start active.
  void set_active(int member, bool active);
  bool active(int member) const;

  // Throws Error naming the nearest known name.
  Handle handle(std::string_view name) const;
  // Empty when the plan has no such tensor.
  Handle find(std::string_view name) const;

  // All bytes of a tensor of one member, in and out. Throws Error when member or size do not fit.
  void stage(const Handle& tensor, int member, std::span<const std::byte> bytes);
  void read(const Handle& tensor, int member, std::span<std::byte> bytes);

  // Whether the tensor has the content of that number, as `mark_content` said after staging it; whatever writes to the
  // tensor since takes that back. A tensor that a step writes must not be marked.
  bool has_content(const Handle& tensor, int member, std::uint64_t content) const;
  void mark_content(const Handle& tensor, int member, std::uint64_t content);

  // Takes over tensors of all members from another session with as many, by name. Between two sessions of one device
  // they do not pass through the host.
  void copy(Session& from, std::span<const std::string> names);

  // One element of a tensor of any type.
  double number(const Handle& tensor, int member, std::size_t index = 0);
  double number(std::string_view name, int member, std::size_t index = 0) {
    return number(handle(name), member, index);
  }
  // How many runs back a device still knows its small outputs, which it hands over without a wait; 0: the last run
  // only.
  virtual int earlier_runs() const { return 0; }
  // The first element of such an output, as the run before the last `runs_ago` ones left it; waits for that run alone.
  double earlier_number(const Handle& tensor, int member, int runs_ago);
  // The same for every element, rounded to the tensor's type.
  void stage_number(const Handle& tensor, int member, double value);
  void stage_number(std::string_view name, int member, double value) { stage_number(handle(name), member, value); }

  // By element type; throws Error when it is another one.
  template <typename T>
  void write(const Handle& tensor, std::span<const T> values, int member = 0) {
    check_type(tensor, dtype_of<T>());
    check_elements(tensor, values.size());
    stage(tensor, member, std::as_bytes(values));
  }
  template <typename T>
  void write(std::string_view name, std::span<const T> values, int member = 0) {
    write<T>(handle(name), values, member);
  }
  // Writes the same values to every member.
  template <typename T>
  void write_all(std::string_view name, std::span<const T> values) {
    const Handle tensor = handle(name);
    for (int member = 0; member < members_; ++member) write<T>(tensor, values, member);
  }
  template <typename T>
  std::vector<T> read(const Handle& tensor, int member = 0) {
    check_type(tensor, dtype_of<T>());
    std::vector<T> values(tensor.elements());
    read(tensor, member, std::as_writable_bytes(std::span(values)));
    return values;
  }
  template <typename T>
  std::vector<T> read(std::string_view name, int member = 0) {
    return read<T>(handle(name), member);
  }
  // As doubles, from f32 or f64.
  std::vector<double> numbers(const Handle& tensor, int member = 0);
  std::vector<double> numbers(std::string_view name, int member = 0) { return numbers(handle(name), member); }
  // To f32 or f64.
  void stage_numbers(const Handle& tensor, int member, std::span<const double> values);

 protected:
  Session(std::shared_ptr<const Plan> plan, int members);

  struct Copied {           // the same tensor of two sessions
    std::int64_t to, from;  // offsets
    std::size_t bytes;
  };

  const std::shared_ptr<const Plan>& shared_plan() const { return plan_; }
  void check_member(int member) const;
  void check_member(const Handle& tensor, int member) const;
  static void check_type(const Handle& tensor, DType dtype);
  static void check_elements(const Handle& tensor, std::size_t given);
  double element(int member, std::int64_t offset, DType dtype, std::int64_t index);

 private:
  virtual void enqueue(std::span<const int> active, Watching watching) = 0;
  virtual std::optional<NonFinite> check(int member) = 0;
  // Part of a member's memory; in order with the runs.
  virtual void put(int member, std::int64_t offset, std::span<const std::byte> bytes) = 0;
  virtual void get(int member, std::int64_t offset, std::span<std::byte> bytes) = 0;
  // Of an earlier run, at most earlier_runs() ago.
  virtual void get_earlier(int member, std::int64_t offset, std::span<std::byte> bytes, int runs_ago);
  // False where the other session is of another kind.
  virtual bool copy_on_device(Session& /*from*/, std::span<const Copied> /*tensors*/) { return false; }

  void forget_content(int member, std::int64_t offset);

  std::shared_ptr<const Plan> plan_;
  int members_;
  std::vector<int> active_;                                           // in order
  std::vector<std::map<std::int64_t, std::uint64_t>> contents_ = {};  // by member and offset; few have one
};

}  // namespace norma
