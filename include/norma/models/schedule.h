// Constants of a scheme that depend on the step: inputs of a plan that the host writes before each step.
#pragma once

#include <string>
#include <vector>

#include "norma/schemes/evaluate.h"
#include "norma/schemes/scheme.h"

namespace norma {

struct Schedule {
  std::string input;                   // name of the input, "schedule.s"; [1], of the model's dtype
  std::string name;                    // of the constant
  std::vector<NamedExpression> chain;  // it and the schedules it depends on, each after those it needs
  Variables numbers;                   // what else they depend on

  // Its value at step t (from 0) of a run of `steps` steps. A formula that mentions T needs the latter.
  double at(double t, double steps) const;
};

}  // namespace norma
