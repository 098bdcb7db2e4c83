// Independent jobs on threads of their own.
#pragma once

#include <cstddef>
#include <functional>

namespace norma {

// Runs job(0) ... job(count - 1), at most `at_once` at a time. A job that throws is run once more, alone, after all
// others have ended: what it lacked may be free then. What it throws that time is thrown to the caller, of the first
// such job.
void side_by_side(std::size_t count, int at_once, const std::function<void(std::size_t)>& job);

}  // namespace norma
