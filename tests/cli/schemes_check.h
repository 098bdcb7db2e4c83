// norma schemes as a process, for tests of it.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/process.h"

namespace norma::test {

// The theory of a small model, which takes less time.
inline const std::vector<std::string> kSmall = {"--theory-width", "32", "--theory-time", "16"};

inline nlohmann::json explained(const TemporaryFolder& folder, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "schemes");
  arguments.push_back("--json");
  arguments.insert(arguments.end(), kSmall.begin(), kSmall.end());
  const Ended outcome = run(folder, arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return nlohmann::json::parse(outcome.out);
}

}  // namespace norma::test
