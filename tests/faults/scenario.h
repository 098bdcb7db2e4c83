// A command, the state in which it is started, and how it ends undisturbed.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "bench.h"
#include "snapshot.h"

namespace norma::faults {

struct State {
  std::filesystem::path folder;
  bool ended = false;  // or the command was stopped there
};

struct Scenario {
  std::string name;
  std::vector<std::string> arguments;
  bool begun = false;           // from nothing, or from the middle
  std::filesystem::path start;  // a folder as an earlier start left it, with the data
  Snapshot end;
  std::vector<State> states;  // at which files may be damaged
  std::vector<Call> calls;    // of an undisturbed run from `start`
};

// All of them, ready: each one from nothing, and once more from the middle. `only` names those that are wanted; empty:
// all.
std::vector<Scenario> prepare(Bench& bench, const std::filesystem::path& folder, const std::string& only);

}  // namespace norma::faults
