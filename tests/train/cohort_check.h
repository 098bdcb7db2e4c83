// What tests of cohorts share: a small run, and the weights of a member.
#pragma once

#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "norma/train/cohort.h"
#include "norma/train/data.h"

namespace norma::test {

// A small run, changed by lines such as "train.lr = 1".
inline RunConfig small_run(const std::string& changes = "") {
  RunConfig config = parse_config(R"(
model.layers = 2
model.width = 16
model.heads = 2
model.batch = 4
model.time = 12
train.steps = 60
train.lr = 3e-3
)",
                                  "test");
  std::istringstream lines(changes);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t equals = line.find('=');
    override_config(config, line.substr(0, line.find(' ')) + "=" + line.substr(equals + 1));
  }
  return config;
}

inline Cohort make_cohort(const RunConfig& config, CohortOptions options = {}) {
  return {config, open_data(config), options};
}

inline std::vector<float> weights(Cohort& cohort, int member = 0) {
  return cohort.session().read<float>("layers.1.ffn.out.weight", member);
}

// Changes a tensor of a member.
template <typename Change>
void edit(Cohort& cohort, const char* name, Change change, int member = 0) {
  std::vector<float> values = cohort.session().read<float>(name, member);
  change(values);
  cohort.session().write<float>(name, values, member);
}

// A bias that is not a number from now on.
inline void poison(Cohort& cohort, int member = 0) {
  edit(
      cohort, "layers.1.attn.out.bias",
      [](std::vector<float>& bias) { bias[3] = std::numeric_limits<float>::quiet_NaN(); }, member);
}

}  // namespace norma::test
