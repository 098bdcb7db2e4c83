// norma bench as a process: the JSON that scripts read, and what it leaves behind.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/process.h"

namespace norma {
namespace {

using nlohmann::json;
using test::Ended;
using test::TemporaryFolder;

TEST(BenchProcess, PrintsLimitsAndSharesOfThem) {
  const TemporaryFolder folder;
  const std::string kept = folder / "kept";
  const Ended outcome = test::run(folder, {"bench", "--json", "--only", "norms", "--match", "layer/forward/4096x512",
                                           "--seconds", "0.001", "--out", kept});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json all = json::parse(outcome.out);
  for (const char* limit : {"copy_gbps", "cache_copy_gbps", "sgemm_gflops", "sgemm_core_gflops"}) {
    EXPECT_GT(all.at("limits").at(limit).get<double>(), 0) << limit;
  }
  ASSERT_EQ(all.at("results").size(), 1u);
  const json& result = all["results"][0];
  EXPECT_EQ(result.at("name"), "norm/layer/forward/4096x512");
  EXPECT_EQ(result.at("unit"), "GB/s");
  EXPECT_EQ(result.at("limit"), "cache_copy_gbps");
  EXPECT_NEAR(result.at("share").get<double>(),
              result.at("value").get<double>() / result.at("limit_value").get<double>(), 1e-9);
  int files = 0;
  for (const auto& file : std::filesystem::directory_iterator(kept)) {
    ++files;
    EXPECT_EQ(json::parse(test::read_file(file.path())), all);
  }
  EXPECT_EQ(files, 1);
}

TEST(BenchProcess, MistakesAreOneClearError) {
  const TemporaryFolder folder;
  const Ended nothing =
      test::run(folder, {"bench", "--only", "theory", "--match", "no such name", "--seconds", "0.001"});
  EXPECT_EQ(nothing.code, 2);
  EXPECT_NE(nothing.err.find("nothing among theory has 'no such name' in its name"), std::string::npos) << nothing.err;
  const Ended peer = test::run(folder, {"bench", "--peer", folder / "missing.json"});
  EXPECT_EQ(peer.code, 2);
  EXPECT_NE(peer.err.find("missing.json"), std::string::npos) << peer.err;
}

}  // namespace
}  // namespace norma
