// Which faults there are: for every call of a scenario those that suit it.
#pragma once

#include <string>
#include <vector>

#include "damage.h"
#include "scenario.h"
#include "trial.h"

namespace norma::faults {

// Something that goes wrong with a call, or harm that is done to a file between two starts.
struct Fault {
  const Scenario* scenario = nullptr;
  std::vector<Injection> injections;
  const State* state = nullptr;
  Damage damage;
  std::string name;   // without numbers, for the table: "kill-before", "flip"
  std::string repro;  // options of this program that repeat it
  std::string place;  // for the reader: "write out/metrics.jsonl"
};

// A kill at every call that changes something of a command from nothing, in any case. `usual`: of the others some at
// each call, in turn.
enum class Thoroughness { usual, every };
std::vector<Fault> faults_of(const Scenario& scenario, unsigned seed, Thoroughness thoroughness);

Outcome try_fault(Bench& bench, const Fault& fault);

}  // namespace norma::faults
