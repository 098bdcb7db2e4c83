// The grid of a sweep: what it refuses, its file, and which of its cells share a program.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "error_of.h"
#include "lab/sweep/cohorts.h"
#include "lab/sweep/halving.h"
#include "lab/sweep_check.h"
#include "temporary_folder.h"

namespace norma {
namespace {

using test::small_sweep;

TEST(SweepGrid, TheGridIsCheckedBeforeAnythingIsWritten) {
  const test::TemporaryFolder folder;
  const auto said = [&](const std::vector<std::string>& settings) {
    return test::error_of([&] {
      SweepConfig config = small_sweep();
      for (const std::string& setting : settings) override_sweep(config, setting);
      test::sweep(config, folder / "never");
    });
  };
  EXPECT_NE(said({}).find("the grid is empty"), std::string::npos) << said({});
  EXPECT_NE(said({"train.lr=[]"}).find("train.lr has no values"), std::string::npos);
  EXPECT_NE(said({"train.rl=[1, 2]"}).find("did you mean 'train.lr'"), std::string::npos) << said({"train.rl=[1, 2]"});
  EXPECT_NE(said({"train.lr=[1, fast]"}).find("'fast' was given; expected a number"), std::string::npos);
  EXPECT_NE(said({"train.lr=[1e-3, 0.001]"}).find("same run twice"), std::string::npos);
  EXPECT_NE(said({"members.lr=[1e-3, 0.001]"}).find("train.lr"), std::string::npos);
  EXPECT_NE(said({"model.heads=[2, 7]"}).find("heads"), std::string::npos) << said({"model.heads=[2, 7]"});
  std::string many = "train.seed=[0";
  for (int i = 1; i < 1000; ++i) many += "," + std::to_string(i);
  std::string rates = "train.data_seed" + many.substr(10);
  EXPECT_NE(said({many + "]", rates + "]"}).find("1000 x 1000 cells; expected at most"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "never"));
}

TEST(SweepGrid, AFileSaysTheSameAsTheCommandLine) {
  const SweepConfig file = parse_sweep(R"toml([train]
steps = 7
[sweep]
"model.scheme" = ["pre", "norm(x + f(x))"]
train.lr = [1e-4, 1e-3]
members = 5
halving = {eta = 2, min_steps = 3}
[[sweep.list]]
"model.layers" = 2
"model.width" = 32
[[sweep.list]]
"model.layers" = 4
"model.width" = 16
)toml",
                                       "sweep.toml");
  EXPECT_EQ(file.most_members, 5);
  ASSERT_TRUE(file.halving.has_value());
  EXPECT_EQ(file.halving->eta, 2);
  const std::vector<SweepCell> cells = sweep_cells(file);
  ASSERT_EQ(cells.size(), 8u);
  std::set<std::string> ids;
  for (const SweepCell& cell : cells) {
    EXPECT_EQ(cell.config.model.layers * cell.config.model.width, 64);
    EXPECT_EQ(cell.config.train.steps, 7);
    EXPECT_EQ(cell.id.find_first_of("/\"' ()"), std::string::npos) << cell.id;
    ids.insert(cell.id);
  }
  EXPECT_EQ(ids.size(), 8u);
  const std::vector<SweepCell> again = sweep_cells(parse_sweep(print_sweep(file), "printed"));
  ASSERT_EQ(again.size(), 8u);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(again[i].id, cells[i].id);
  SweepConfig line;
  override_sweep(line, "train.steps=7");
  override_sweep(line, "model.scheme=[pre, norm(x + f(x))]");
  EXPECT_EQ(line.axes[0].values, file.axes[0].key == "model.scheme" ? file.axes[0].values : file.axes[1].values);
  EXPECT_NE(test::error_of([] { parse_sweep("[sweep]\ntrain.lr = [1, \"x\"]\n", "a.toml"); }).find("a.toml"),
            std::string::npos);
  EXPECT_NE(test::error_of([] { parse_sweep("[sweep]\ntrain.lr = [1\n", "a.toml"); }).find("line"), std::string::npos);
  EXPECT_NE(test::error_of([] { parse_sweep("[sweep]\nhalving = 3\n", "a.toml"); }).find("eta"), std::string::npos);
}

TEST(SweepGrid, GroupsShareAProgramAndPartsAreEven) {
  SweepConfig config = small_sweep();
  override_sweep(config, "model.layers=[2, 3]");
  override_sweep(config, "train.lr=[1e-3, 1e-2]");
  override_sweep(config, "train.seed=[1, 2]");
  override_sweep(config, "train.dropout=[0, 0.1, 0.2]");
  const std::vector<SweepCell> cells = sweep_cells(config);
  const std::vector<SweepGroup> groups = group_cells(cells);
  ASSERT_EQ(groups.size(), 4u) << "depth and whether there is dropout";
  for (const SweepGroup& group : groups) {
    for (const std::size_t cell : group.cells) {
      EXPECT_EQ(cells[cell].config.model.layers, cells[group.cells[0]].config.model.layers);
      EXPECT_EQ(cells[cell].config.train.dropout > 0, cells[group.cells[0]].config.train.dropout > 0);
    }
  }
  EXPECT_EQ(even_parts(10, 4), (std::vector<std::int64_t>{3, 3, 4}));
  EXPECT_EQ(even_parts(8, 8), (std::vector<std::int64_t>{8}));
  EXPECT_EQ(rung_steps(HalvingConfig{3, 100}, 1000), (std::vector<std::int64_t>{100, 300, 900, 1000}));
  EXPECT_EQ(rung_steps(HalvingConfig{3, 100}, 100), (std::vector<std::int64_t>{100}));
  EXPECT_EQ(rung_steps(std::nullopt, 50), (std::vector<std::int64_t>{50}));
}

}  // namespace
}  // namespace norma
