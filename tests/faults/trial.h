// One fault, from the start of the command to the verdict.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bench.h"
#include "scenario.h"

namespace norma::faults {

enum class Verdict {
  harmless,     // the command ended as if nothing had been
  resumed,      // it stopped; repeated, it came to the same end
  refused,      // damage was answered with an error that names the file; once it was repaired, the same end
  ignored,      // damage to a file that is not needed: it stays, nothing else differs
  not_reached,  // the call never came
  leftover,     // the same end, with files that should be gone
  lost,         // exit code 0, and something differs or is missing
  dead_end,     // repeating the command does not help
  crashed,      // a signal, or an internal error
  hung,
};
inline constexpr int kVerdicts = 10;
const char* word_of(Verdict verdict);
bool is_failure(Verdict verdict);

struct Outcome {
  Verdict verdict = Verdict::harmless;
  std::string why;  // of a failure
};

// What is wrong with the way in which a process ended, whatever was done to it.
std::optional<Outcome> wrong_end(const Exit& exit, bool was_killed);

// The injections go into the first, second, ... start of the command; then it is repeated undisturbed.
Outcome try_injections(Bench& bench, const Scenario& scenario, const std::vector<Injection>& injections);

}  // namespace norma::faults
