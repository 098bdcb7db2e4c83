// Refuses a plan that does not fit before anything is allocated, and says where the memory would go.
#pragma once

#include <cstdint>
#include <string_view>

#include "norma/graph/plan.h"

namespace norma {

// `where`: "this machine has". Throws Error unless `members` times `stride` bytes fit into `available`.
void check_memory(const Plan& plan, int members, std::int64_t stride, std::int64_t available, std::string_view where);

}  // namespace norma
