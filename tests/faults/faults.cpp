#include "faults.h"

#include <fmt/format.h>

#include <cerrno>
#include <map>

namespace norma::faults {
namespace {

constexpr int kFlips = 3, kManyFlips = 12;  // of each file
constexpr std::size_t kRotation = 4;        // a call gets one of four faults, the next call the next one

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

// A checkpoint is many writes to one new file. A kill is tried at each of them, other faults at the first and the last
// and at one of eight between: what they leave differs only in the length of a file that is thrown away.
bool is_one_of_many(const std::vector<Call>& calls, std::size_t i) {
  if (calls[i].kind != "write" || i == 0 || i + 1 == calls.size()) return false;
  return calls[i - 1].kind == "write" && calls[i + 1].kind == "write" && calls[i - 1].file == calls[i].file &&
         calls[i + 1].file == calls[i].file && i % 8 != 0;
}

Fault injected(const Scenario& scenario, const std::string& plan, const Call& call) {
  Fault fault;
  fault.scenario = &scenario;
  fault.injections = {{plan, call.number}};
  fault.name = plan;
  fault.repro = fmt::format("--only {} --plan {} --at {}", scenario.name, plan, call.number);
  fault.place = call.name + " " + call.file;
  return fault;
}

Fault damaged(const Scenario& scenario, const State& state, const Damage& damage) {
  Fault fault;
  fault.scenario = &scenario;
  fault.state = &state;
  fault.damage = damage;
  fault.name = damage.how.substr(0, damage.how.find(':'));
  fault.repro = fmt::format("--only {} --plan {}", scenario.name, damage.how);
  fault.place = (state.folder.filename() / damage.file).string();
  return fault;
}

}  // namespace

std::vector<Fault> faults_of(const Scenario& scenario, unsigned seed, Thoroughness thoroughness) {
  const int flips = thoroughness == Thoroughness::every ? kManyFlips : kFlips;
  std::vector<Fault> faults;
  for (std::size_t i = 0; i < scenario.calls.size(); ++i) {
    const Call& call = scenario.calls[i];
    std::size_t turn = i;
    for (const std::string& plan : plans_for(call.kind)) {
      const bool chosen = thoroughness == Thoroughness::every || ++turn % kRotation == 0;
      if ((plan == "kill-before" && !scenario.begun) || (chosen && !is_one_of_many(scenario.calls, i)))
        faults.push_back(injected(scenario, plan, call));
    }
  }
  faults.push_back(injected(scenario, "kill-after", scenario.calls.back()));
  for (const State& state : scenario.states)
    for (const Damage& damage : damages_of(state.folder, flips, seed))
      faults.push_back(damaged(scenario, state, damage));
  return faults;
}

Outcome try_fault(Bench& bench, const Fault& fault) {
  return fault.state == nullptr ? try_injections(bench, *fault.scenario, fault.injections)
                                : try_damage(bench, *fault.scenario, *fault.state, fault.damage);
}

}  // namespace norma::faults
