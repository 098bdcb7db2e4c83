// The moments at which a process brings something to disk, as places to look at it or to kill it.
#pragma once

#include <functional>
#include <string>

namespace norma::test {

// Called before every fsync of this process with the path that is brought to disk; empty: nothing is called. A program
// that links sync_points.cpp has fsync go through it.
extern std::function<void(const std::string& path)> on_sync;

// Runs `action` in a process of its own that ends without a word at its sync number `at`, counted from 1. True when
// there were so many.
bool killed_at_sync(int at, const std::function<void()>& action);

}  // namespace norma::test
