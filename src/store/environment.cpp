#include "norma/store/environment.h"

#include <fmt/chrono.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdint>
#include <ctime>
#include <fstream>

#include "core/json_write.h"
#include "norma/core/error.h"
#include "norma/core/machine.h"
#include "norma/version.h"
#include "store/environment_fields.h"

namespace norma {
namespace {

std::string compiler() {
#if defined(__clang__)
  return fmt::format("clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format("gcc {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string kernel() {
  utsname names{};
  return ::uname(&names) == 0 ? fmt::format("{} {} {}", names.sysname, names.release, names.machine) : "unknown";
}

}  // namespace

Environment environment_now(std::span<const std::string> command_line) {
  return {.norma = NORMA_VERSION,
          .commit = NORMA_COMMIT,
          .compiler = compiler(),
          .cpu = cpu_model(),
          .instruction_set = std::string(machine().instruction_set),
          .cores = machine().cores,
          .memory_bytes = static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE),
          .kernel = kernel(),
          .time = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))),
          .command_line = {command_line.begin(), command_line.end()}};
}

std::string describe_environment(std::span<const std::string> command_line) {
  return write_json_text<nlohmann::ordered_json, NonFiniteAs::name>(environment_now(command_line), 2);
}

}  // namespace norma
