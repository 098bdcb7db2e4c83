// The facts about a run that its configuration does not hold: what ran, where, when and how it was called.
#pragma once

#include <span>
#include <string>

namespace norma {

// JSON text for environment.json: version of norma, commit of the build, compiler, CPU, instruction set, cores, memory,
// kernel, time (UTC) and command line. The name of the machine and of its user are left out.
std::string describe_environment(std::span<const std::string> command_line);

}  // namespace norma
