// The facts of a run are complete, are JSON, and name no machine.
#include "norma/store/environment.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "norma/version.h"

namespace norma {
namespace {

TEST(Environment, HoldsTheFacts) {
  const std::vector<std::string> command = {"norma", "train", "a \"b\".toml", "\xff"};
  const std::string text = describe_environment(command);
  const nlohmann::json facts = nlohmann::json::parse(text);
  EXPECT_EQ(facts.at("norma"), NORMA_VERSION);
  EXPECT_GT(facts.at("cores").get<int>(), 0);
  EXPECT_GT(facts.at("memory_bytes").get<std::int64_t>(), 1 << 20);
  EXPECT_TRUE(facts.at("kernel").get<std::string>().starts_with("Linux "));
  EXPECT_EQ(facts.at("time").get<std::string>().size(), std::string("2000-01-01T00:00:00Z").size());
  EXPECT_EQ(facts.at("command_line").size(), command.size());
  EXPECT_EQ(facts.at("command_line")[2], command[2]);
  for (const char* key : {"compiler", "cpu", "instruction_set"}) EXPECT_NE(facts.at(key), "") << key;
  const std::string commit = facts.at("commit");
  EXPECT_TRUE(commit.empty() || commit.size() == 40) << commit;
  EXPECT_EQ(facts.size(), 10u) << "a new fact needs a test";
}

}  // namespace
}  // namespace norma
