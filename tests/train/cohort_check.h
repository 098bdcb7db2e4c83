// What tests of cohorts share: a small run, and the weights of a member.
#pragma once

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

inline Cohort make_cohort(const RunConfig& config) { return {config, open_data(config)}; }

inline std::vector<float> weights(Cohort& cohort, int member = 0) {
  const auto tensor = cohort.session().tensor<float>("layers.1.ffn.out.weight", member);
  return {tensor.begin(), tensor.end()};
}

}  // namespace norma::test
