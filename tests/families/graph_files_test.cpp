// Graphs from files: tables of nodes and edges, and what is wrong with them.
#include <gtest/gtest.h>

#include "error_of.h"
#include "norma/train/config.h"
#include "norma/train/data.h"
#include "temporary_folder.h"

namespace norma {
namespace {

using test::error_of;

RunConfig graph_run() {
  RunConfig config;
  config.model.family = "gcn";
  return config;
}

TEST(Gcn, ReadsTablesOfNodesAndEdges) {
  const test::TemporaryFolder folder;
  const std::string nodes =
      "node\tlabel\tsplit\tnonzero\n0\t0\ttrain\t0 2\n1\t1\ttrain\t1\n2\t0\tval\t2\n3\t1\ttest\t\n";
  RunConfig config = graph_run();
  const auto open = [&](const std::string& of_nodes, const std::string& of_edges) {
    test::write_file(folder / "nodes.tsv", of_nodes);
    test::write_file(folder / "edges.tsv", of_edges);
    config.data.path = folder / "nodes.tsv";
    config.data.target_path = folder / "edges.tsv";
    return open_data(config);
  };
  const auto source = open(nodes, "0\t1\n2\t0\n2\t0\n3 3\n");
  EXPECT_NE(source->describe().find("2 edges (given twice and counted once: 1) (from a node to itself, where there is "
                                    "one anyway: 1)"),
            std::string::npos)
      << source->describe();
  EXPECT_EQ(source->sizes(),
            (std::map<std::string, std::int64_t>{{"classes", 2}, {"nodes", 4}, {"edges", 8}, {"features", 3}}));
  Batch batch;
  source->fill(0, 1, batch);
  EXPECT_EQ(batch.ids("edges"), (Batch::Ids{0, 0, 0, 1, 1, 2, 2, 3, 0, 1, 2, 0, 1, 0, 2, 3}));
  EXPECT_EQ(batch.numbers("degrees"), (Batch::Numbers{3, 2, 2, 1}));
  EXPECT_EQ(batch.numbers("features"), (Batch::Numbers{0.5, 0, 0.5, 0, 1, 0, 0, 0, 1, 0, 0, 0}));
  EXPECT_EQ(batch.ids("targets"), (Batch::Ids{0, 1, kIgnored, kIgnored}));
  source->fill_evaluation(1, batch);
  EXPECT_EQ(batch.ids("targets"), (Batch::Ids{kIgnored, kIgnored, kIgnored, 1}));
  const auto said = [&](const std::string& of_nodes, const std::string& of_edges) {
    return error_of([&] { open(of_nodes, of_edges); });
  };
  EXPECT_NE(said(nodes, "0\t4\n").find("line 1: an edge between 0 and 4, but nodes are 0 to 3"), std::string::npos);
  EXPECT_NE(said(nodes, "0\tx\n").find("line 1: a node is 'x'; expected a whole number"), std::string::npos);
  EXPECT_NE(said(nodes, "\n").find("no edges between two nodes; expected some"), std::string::npos);
  EXPECT_NE(said("node\tlabel\n1\t0\ttrain\t0\n", "0 1\n").find("this is node 1; expected 0"), std::string::npos);
  EXPECT_NE(said("node\tlabel\n0\t0\tteach\t0\n", "0 0\n").find("the part is 'teach'; expected train"),
            std::string::npos);
  EXPECT_NE(said("node\n0\t0\ttrain\t0\n1\t1\tval\t0\n2\t0\ttest\t0\n", "0 1\n")
                .find("no node of class 1 to train on, but labels up to 1"),
            std::string::npos);
  EXPECT_NE(said("node\n0\t0\ttrain\t0\n1\t0\tval\t0\n2\t0\ttest\t0\n", "0 1\n")
                .find("nodes.tsv' has nodes of one class only; expected at least two"),
            std::string::npos)
      << said("node\n0\t0\ttrain\t0\n1\t0\tval\t0\n2\t0\ttest\t0\n", "0 1\n");
  config.data.target_path.clear();
  EXPECT_NE(error_of([&] { open_data(config); }).find("data.target_path is not given"), std::string::npos);
}

TEST(Gcn, ReadsEdgeListsWithNumbersForFeatures) {
  const test::TemporaryFolder folder;
  const std::string nodes = "node label part a b\n0 0 train 1 5\n1 1 train 3 5\n2 0 val 5 6\n3 1 test -1 5\n";
  RunConfig config = graph_run();
  config.data.task = "edge_list";
  const auto open = [&](const std::string& of_nodes, const std::string& of_edges) {
    test::write_file(folder / "nodes.txt", of_nodes);
    test::write_file(folder / "edges.txt", of_edges);
    config.data.path = folder / "nodes.txt";
    config.data.target_path = folder / "edges.txt";
    return open_data(config);
  };
  Batch batch;
  open(nodes, "0 1\n2 3\n")->fill(0, 1, batch);
  // The mean of training nodes is 2 and the deviation 1; what is constant there says nothing.
  EXPECT_EQ(batch.numbers("features"), (Batch::Numbers{-1, 0, 1, 0, 3, 0, -3, 0}));
  // Whose mean cannot be written down is constant as well.
  std::string constant = "node label part a\n";
  for (int node = 0; node < 6; ++node) constant += fmt::format("{} {} train 0.1\n", node, node % 2);
  open(constant + "6 1 val 0.1\n7 0 test 0.2\n", "0 1\n")->fill(0, 1, batch);
  EXPECT_EQ(batch.numbers("features"), Batch::Numbers(8, 0));
  const auto said = [&](const std::string& of_nodes, const std::string& of_edges) {
    return error_of([&] { open(of_nodes, of_edges); });
  };
  EXPECT_NE(said("node\n0 0 train red\n", "0 0\n").find("line 2: a feature is 'red'; expected a number"),
            std::string::npos);
  EXPECT_NE(said("node\n0 0 train nan\n", "0 0\n").find("a feature is 'nan'; expected a number"), std::string::npos);
  EXPECT_NE(said("node\n0 0 train 1\n1 1 val 1 2\n", "0 0\n").find("line 3: 2 features; the first node has 1"),
            std::string::npos);
  EXPECT_NE(said(nodes, "0 1 2\n").find("line 1: '2' is too much; expected two nodes"), std::string::npos);
  EXPECT_NE(said(nodes, "1 1\n").find("no edges between two nodes"), std::string::npos);
}

}  // namespace
}  // namespace norma
