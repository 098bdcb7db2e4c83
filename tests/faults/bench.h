// The place where a command is run: a folder that the shim watches, and what it needs beside it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "process.h"

namespace norma::faults {

// A line of the shim's log: a call of an undisturbed process, or the one that was hit.
struct Call {
  long number = 0;
  std::string kind, name, file;
};

struct Injection {
  std::string plan;  // as inject_plan.h has it: "kill-before", "error:28"
  long at = 0;
};

struct Programs {
  std::string norma, shim;
};

class Bench {
 public:
  Bench(Programs programs, std::filesystem::path folder);

  void clear(const std::filesystem::path& start);  // a copy of that folder, or empty where it is not given
  Exit run(const std::vector<std::string>& arguments, const std::optional<Injection>& injection) const;
  std::vector<Call> count_calls(const std::vector<std::string>& arguments) const;  // an undisturbed run under the shim
  std::optional<Call> call_that_was_hit() const;                                   // in the last run

  std::filesystem::path root() const { return folder_ / "root"; }

 private:
  Exit run_with(const std::vector<std::string>& arguments, std::map<std::string, std::string> environment) const;
  std::vector<Call> log() const;

  Programs programs_;
  std::filesystem::path folder_;
};

}  // namespace norma::faults
