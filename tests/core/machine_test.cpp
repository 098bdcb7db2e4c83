// What the machine offers, and the environment variable that holds the instruction set down.
#include "norma/core/machine.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace norma {
namespace {

TEST(Machine, IsDescribed) {
  EXPECT_GE(machine().cores, 1);
  EXPECT_GT(machine().last_level_cache, 0);
  EXPECT_FALSE(machine().instruction_set.empty());
}

TEST(Machine, RespectsTheCap) {
  const char* const cap = std::getenv("NORMA_MAX_ISA");
  if (cap == nullptr) GTEST_SKIP() << "NORMA_MAX_ISA is not set";
  EXPECT_NE(machine().instruction_set, std::string(cap) == "avx512" ? "" : "AVX3");
  EXPECT_NE(machine().instruction_set, std::string(cap) == "baseline" ? "AVX2" : "");
}

}  // namespace
}  // namespace norma
