// The facts about a run that its configuration does not hold: what ran, where, when and how it was called.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace norma {

// The name of the machine and of its user are left out.
struct Environment {
  std::string norma, commit;  // version, and commit of the build; empty outside a repository
  std::string compiler, cpu, instruction_set;
  int cores = 0;
  std::int64_t memory_bytes = 0;
  std::string kernel, time;  // UTC
  std::vector<std::string> command_line;
};

Environment environment_now(std::span<const std::string> command_line);

// The same as the text of environment.json.
std::string describe_environment(std::span<const std::string> command_line);

}  // namespace norma
