// The page of a run whose end was taken away while the page was made, which no process can be timed to do.
#include "cli/run_page.h"

#include <gtest/gtest.h>

#include "error_of.h"
#include "lab/planted_runs.h"

namespace norma {
namespace {

TEST(RunPage, SaysThatTheRunHasNotEndedWhereItsEndIsGone) {
  const test::TemporaryFolder folder;
  const std::filesystem::path run = test::train_small(folder, "run", {"train.steps=2", "model.layers=1"});
  EXPECT_EQ(cli::page_of(read_history(run), {}).members.size(), 1u);
  std::filesystem::remove(run / "DONE");
  EXPECT_EQ(test::error_of([&] { cli::page_of(read_history(run), {}); }),
            "the run in '" + run.string() +
                "' has not ended, or its DONE was taken away; the same norma train ends it again");
}

}  // namespace
}  // namespace norma
