#include "faults.h"

#include <fmt/format.h>

#include <cerrno>
#include <map>

namespace norma::faults {
namespace {

std::string error(int number) { return fmt::format("error:{}", number); }

// A kill before a call finds what a kill after the call before it would.
const std::vector<std::string>& plans_for(const std::string& kind) {
  static const std::map<std::string, std::vector<std::string>> plans = {
      {"open-read", {error(EMFILE), error(EIO), "dead"}},
      {"open-write", {"kill-before", error(ENOSPC), error(EMFILE), error(EACCES), "full", "read-only", "power"}},
      {"read", {error(EIO)}},
      {"write",
       {"kill-before", "short-kill", "short-write", error(ENOSPC), error(EIO), error(EINTR), "full", "dead", "power"}},
      {"sync", {"kill-before", error(EIO), "dead", "power", "power-data", "power-names"}},
      {"name",
       {"kill-before", error(EIO), error(ENOSPC), error(EACCES), "read-only", "power", "power-data", "power-names"}},
      {"lock", {"kill-before", error(ENOLCK)}},
      {"close", {error(EIO), "power"}}};
  return plans.at(kind);
}

}  // namespace

std::vector<Fault> faults_of(const Scenario& scenario, int index) {
  std::vector<Fault> faults;
  for (const Call& call : scenario.calls)
    for (const std::string& plan : plans_for(call.kind))
      faults.push_back({index, {{plan, call.number}}, call.name + " " + call.file});
  const long last = scenario.calls.back().number;
  faults.push_back({index, {{"kill-after", last}}, "the last call"});
  return faults;
}

}  // namespace norma::faults
