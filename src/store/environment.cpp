#include "norma/store/environment.h"

#include <fmt/chrono.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdint>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>

#include "norma/core/error.h"
#include "norma/core/machine.h"
#include "norma/version.h"

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

std::string describe_environment(std::span<const std::string> command_line) {
  nlohmann::ordered_json facts;
  facts["norma"] = NORMA_VERSION;
  facts["commit"] = NORMA_COMMIT;  // at which the build was configured; empty outside a repository
  facts["compiler"] = compiler();
  facts["cpu"] = cpu_model();
  facts["instruction_set"] = machine().instruction_set;
  facts["cores"] = machine().cores;
  facts["memory_bytes"] = static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
  facts["kernel"] = kernel();
  facts["time"] = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  facts["command_line"] = command_line;
  // An argument may be any bytes; those that are not UTF-8 are marked rather than refused.
  return facts.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace norma
