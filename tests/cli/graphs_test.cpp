// Graph networks as their users run them: every verb on small generated graphs, and bad files.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/process.h"

namespace norma {
namespace {

using test::Ended;
using test::TemporaryFolder;

std::vector<std::string> with_graph(std::vector<std::string> arguments, std::vector<std::string> more = {}) {
  arguments.insert(arguments.end(), {"--model.family=gcn", "--model.width=8", "--data.settings.nodes=120",
                                     "--data.settings.taught=10", "--data.settings.degree=8"});
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(GraphProcess, TrainsChecksPlansAndInspectsARun) {
  const TemporaryFolder folder;
  const std::string out = folder / "run";
  const std::vector<std::string> model = {"--model.layers=2", "--model.scheme=gcn", "--train.lr=1e-2"};
  Ended ended = test::run(folder, with_graph({"train", "--out", out, "--train.steps=40"}, model));
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE((ended.out + ended.err).find("accuracy"), std::string::npos) << ended.out << ended.err;
  ended = test::run(folder, with_graph({"plan"}, model));
  EXPECT_EQ(ended.code, 0) << ended.err;
  ended = test::run(folder, with_graph({"check", "--out", folder / "check.safetensors"}, model));
  EXPECT_EQ(ended.code, 0) << ended.err;
  ended = test::run(folder, {"inspect", "--run", out, "--only", "smoothing", "--json"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const auto analyses = nlohmann::json::parse(ended.out)["inspect"];
  ASSERT_EQ(analyses.size(), 3u);
  EXPECT_EQ(analyses[0]["name"], "dirichlet");
  EXPECT_EQ(analyses[0]["series"][0]["profiles"][0]["sites"].size(), 3u) << "the embedding and two layers";
  EXPECT_EQ(analyses[1]["name"], "mean_distance");
}

TEST(GraphProcess, InspectShowsHowLinearLayersSmoothBesideTheTheory) {
  const TemporaryFolder folder;
  const Ended ended = test::run(folder, {"inspect", "f(x)", "gcn", "--family", "gcn", "--depths", "2,8", "--width",
                                         "16", "--only", "smoothing", "--task", "block_model"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.out.find("Dirichlet energy"), std::string::npos) << ended.out;
  EXPECT_NE(ended.out.find("Mean average distance"), std::string::npos) << ended.out;
}

TEST(GraphProcess, AStudySpeaksOfAccuracy) {
  const TemporaryFolder folder;
  const Ended ended = test::run(
      folder, with_graph({"study",    "--out", folder / "out",  "--quiet", "--depths",  "2,4", "--layers", "2",
                          "--steps",  "40",    "--lr",          "1e-2",    "--warmup",  "0",   "--seeds",  "1,2",
                          "--budget", "0",     "--extra-rates", "0",       "--schemes", "gcn", "gcnii"}));
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.out.find("accuracy"), std::string::npos) << ended.out;
  EXPECT_EQ(ended.out.find("token"), std::string::npos) << ended.out;
  EXPECT_EQ(ended.out.find("nats"), std::string::npos) << ended.out;
}

TEST(GraphProcess, GraphsAreClassifiedAsWholes) {
  const TemporaryFolder folder;
  const Ended ended =
      test::run(folder, {"train", "--out", folder / "run", "--model.family=graphs", "--model.convolution=gin",
                         "--model.readout=sum", "--model.layers=2", "--model.width=8", "--model.batch=8",
                         "--model.scheme=res_plus", "--train.steps=30", "--train.lr=5e-3", "--data.settings.graphs=60",
                         "--data.settings.drop_edge=0.1"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE((ended.out + ended.err).find("accuracy"), std::string::npos) << ended.out << ended.err;
}

TEST(GraphProcess, BadFilesEndBeforeTrainingWithCode2) {
  const TemporaryFolder folder;
  int runs = 0;
  const auto train = [&](const std::string& nodes, const std::string& edges) {
    test::write_file(folder / "nodes.tsv", nodes);
    test::write_file(folder / "edges.tsv", edges);
    return test::run(
        folder, {"train", "--out", folder / ("run" + std::to_string(runs++)), "--model.family=gcn", "--model.layers=2",
                 "--model.width=4", "--model.scheme=gcn", "--train.steps=2", "--data.task=edge_list",
                 "--data.path=" + (folder / "nodes.tsv"), "--data.target_path=" + (folder / "edges.tsv")});
  };
  const std::string nodes = "node label part a\n0 0 train 1\n1 1 train 2\n2 0 val 1\n3 1 test 2\n";
  EXPECT_EQ(train(nodes, "0 1\n2 3\n").code, 0);
  for (const auto& [bad_nodes, bad_edges, said] :
       {std::tuple{nodes, std::string("0 9\n"), "an edge between 0 and 9, but nodes are 0 to 3"},
        {nodes, std::string(""), "is empty; expected edges of a graph"},
        {nodes, std::string("1 1\n"), "no edges between two nodes"},
        {std::string("node\n0 0 train x\n"), std::string("0 0\n"), "a feature is 'x'; expected a number"},
        {std::string("node\n0 0 train 1\n1 -1 val 1\n"), std::string("0 1\n"), "the label is '-1'; expected a whole"},
        {std::string("node\n0 0 train 1\n1 2 train 1\n2 1 val 1\n3 0 test 1\n"), std::string("0 1\n"),
         "no node of class 1 to train on"}}) {
    const Ended ended = train(bad_nodes, bad_edges);
    EXPECT_EQ(ended.code, 2) << said;
    EXPECT_NE(ended.err.find(said), std::string::npos) << ended.err;
  }
}

}  // namespace
}  // namespace norma
