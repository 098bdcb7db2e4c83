// Which faults there are: for every call of a scenario those that suit it.
#pragma once

#include <string>
#include <vector>

#include "scenario.h"

namespace norma::faults {

struct Fault {
  int scenario = 0;
  std::vector<Injection> injections;
  std::string call;  // for the reader: "write metrics.jsonl"
};

std::vector<Fault> faults_of(const Scenario& scenario, int index);

}  // namespace norma::faults
