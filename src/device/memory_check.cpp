#include "device/memory_check.h"

#include <algorithm>

#include "norma/core/arena.h"
#include "norma/core/error.h"

namespace norma {

void check_memory(const Plan& plan, int members, std::int64_t stride, std::int64_t available, std::string_view where) {
  if (stride <= available / members) return;
  const std::vector<int> largest = plan.largest_values(1);
  const Value* value = largest.empty() ? nullptr : &plan.values()[static_cast<std::size_t>(largest[0])];
  const std::int64_t fitting = available / std::max<std::int64_t>(stride, 1);
  const std::string fewer =
      members > 1 && fitting > 0 ? fmt::format("fewer members ({} fit at a time), ", fitting) : std::string();
  fail(
      "the plan needs {} for each of {} member{} but {} {} available; the largest tensor is {}. Less is needed with "
      "{}smaller batches, train.keep=lean or train.recompute_every",
      describe_bytes(stride), members, members == 1 ? "" : "s", where, describe_bytes(available),
      value == nullptr ? "none" : "'" + value->name + "' " + value->type.str(), fewer);
}

}  // namespace norma
