// Graphs that are classified as wholes: batches of small graphs, readout, a task whose best score is known, files.
#include <cmath>

#include "models/model_check.h"
#include "norma/train/cohort.h"
#include "norma/train/data.h"
#include "temporary_folder.h"

namespace norma {
namespace {

using test::error_of;

RunConfig mixing_run(const std::string& scheme) {
  RunConfig config;
  config.model.family = "graphs";
  config.model.layers = 2;
  config.model.width = 16;
  config.model.batch = 16;
  config.model.scheme = scheme;
  config.train.lr = 1e-2;
  config.train.threads = 1;
  config.train.steps = 150;
  return config;
}

std::vector<float> logits_of(const RunConfig& run, const Batch& batch) {
  RunConfig config = run;
  const auto source = open_data(config);
  config = resolve_config(config, *source);
  Graph graph;
  const Model model = build_model(graph, config.model, {.logits = true});
  graph.output("logits", model.logits);
  CpuSession session(test::plain_plan(graph), {.threads = 1});
  initialise(session, model.parameters, 1);
  for (const InputSpec& input : config.model.family->inputs(config.model)) {
    if (!session.plan().has_slot(input.name)) continue;
    if (input.content == InputSpec::Content::numbers)
      session.write<float>(input.name, batch.numbers(input.name), 0);
    else
      session.write<std::int32_t>(input.name, batch.ids(input.name), 0);
  }
  session.run();
  const std::span<float> logits = session.tensor<float>("logits");
  return {logits.begin(), logits.end()};
}

// What a graph is told must not depend on the other graphs of its batch, nor on the room for nodes that are not there.
TEST(Graphs, AGraphIsAnsweredForByItself) {
  for (const GraphConvolution convolution :
       {GraphConvolution::gcn, GraphConvolution::sage, GraphConvolution::gin, GraphConvolution::gat}) {
    for (const Segmented readout : {Segmented::sum, Segmented::mean, Segmented::max}) {
      RunConfig config = mixing_run("res_plus");
      config.data.settings = {{"graphs", 100}};
      config.model.convolution = convolution;
      config.model.readout = readout;
      config.model.norm = NormKind::layer;
      Batch batch, alone;
      open_data(config)->fill_evaluation(0, batch);
      const std::vector<float> together = logits_of(config, batch);
      config.model.batch = 1;
      for (std::int64_t graph = 0; graph < 3; ++graph) {
        config.data.evaluation_batches = 0;
        open_data(config)->fill_evaluation(graph, alone);
        const std::vector<float> own = logits_of(config, alone);
        for (std::size_t k = 0; k < 2; ++k)
          EXPECT_NEAR(own[k], together[static_cast<std::size_t>(2 * graph) + k], 1e-5 * (1 + std::abs(own[k])));
      }
    }
  }
}

TEST(Graphs, TheMixingTaskHasABestScore) {
  RunConfig config = mixing_run("gcn");
  const double usual = *open_data(config)->best_accuracy();
  EXPECT_GT(usual, 0.8);
  EXPECT_LT(usual, 0.99);
  config.data.settings = {{"inside", 1}};
  EXPECT_NEAR(*open_data(config)->best_accuracy(), 0.5, 1e-9);
  EXPECT_NEAR(*open_data(config)->optimum(), std::log(2.0), 1e-9);
  config.data.settings = {{"inside", 1000}, {"degree", 3}};
  EXPECT_GT(*open_data(config)->best_accuracy(), 0.999);
}

TEST(Graphs, LearnsTheMixingTaskNearlyUpToItsBestAccuracy) {
  RunConfig config = mixing_run("res_plus");
  config.model.convolution = GraphConvolution::gin;
  config.model.readout = Segmented::sum;
  config.train.lr = 5e-3;
  config.train.steps = 500;
  config.data.evaluation_batches = 0;
  const auto source = open_data(config);
  Cohort cohort(config, source);
  while (cohort.step() < config.train.steps) cohort.train_step();
  cohort.evaluate();
  EXPECT_GT(*cohort.member(0).evaluation_accuracy, *source->best_accuracy() - 0.08);
  EXPECT_LT(*cohort.member(0).evaluation_accuracy, *source->best_accuracy() + 0.05);
}

TEST(Graphs, MistakesAreNamed) {
  RunConfig config = mixing_run("gcn");
  config.model.batch = 900;
  EXPECT_NE(error_of([&] { open_data(config); }).find("800 graphs to train on and model.batch is 900"),
            std::string::npos);
  ModelConfig model = test::tiny("graphs", "res_plus");
  model.norm = NormKind::batch;
  EXPECT_NE(error_of([&] {
              Graph graph;
              build_model(graph, model);
            }).find("BatchNorm over a batch of graphs would count the room for nodes that are not there"),
            std::string::npos);
}

class TuFiles : public testing::Test {
 protected:
  // Three graphs: a triangle of class -1, an edge of class 4, a node alone of class 4; and an edge again for each
  // class.
  std::map<std::string, std::string> files = {{"A", "1, 2\n2, 3\n3, 1\n4, 5\n5, 4\n7, 8\n9, 10\n"},
                                              {"graph_indicator", "1\n1\n1\n2\n2\n3\n4\n4\n5\n5\n"},
                                              {"graph_labels", "-1\n4\n4\n-1\n4\n"},
                                              {"node_labels", "7\n7\n7\n9\n9\n8\n7\n7\n9\n9\n"}};

  std::shared_ptr<const Source> open() {
    for (const auto& [name, text] : files) test::write_file(folder_ / ("DS_" + name + ".txt"), text);
    RunConfig config;
    config.model.family = "graphs";
    config.model.batch = 2;
    config.data.task = "tu";
    config.data.path = folder_ / "DS";
    config.data.validation_fraction = 0.3;
    return open_data(config);
  }
  std::string said(const std::string& name, const std::string& text) {
    const std::string before = std::exchange(files[name], text);
    const std::string error = error_of([&] { open(); });
    files[name] = before;
    return error;
  }

  test::TemporaryFolder folder_;
};

TEST_F(TuFiles, AreReadAsOneGraphOfParts) {
  const auto source = open();
  EXPECT_EQ(source->classes(), 2);
  EXPECT_EQ(source->labels(), (std::vector<std::string>{"-1", "4"}));
  EXPECT_EQ(source->held_out_records(), 2) << "of each class one";
  EXPECT_EQ(source->sizes().at("features"), 3);
  Batch batch;
  for (std::uint64_t index = 0; index < 6; ++index) {
    source->fill(index, 3, batch);
    const Batch::Ids &edges = batch.ids("edges"), &graph_of = batch.ids("graph_of");
    const std::size_t count = edges.size() / 2;
    EXPECT_TRUE(std::is_sorted(edges.begin(), edges.begin() + static_cast<std::ptrdiff_t>(count)));
    EXPECT_TRUE(std::is_sorted(graph_of.begin(), graph_of.end()));
    for (std::size_t i = 0; i < count; ++i) {
      if (edges[i] == static_cast<std::int32_t>(graph_of.size())) continue;
      EXPECT_EQ(graph_of[static_cast<std::size_t>(edges[i])], graph_of[static_cast<std::size_t>(edges[count + i])]);
    }
  }
  EXPECT_NE(source->describe().find("3 graphs to train on and 2 held out, in 2 classes"), std::string::npos)
      << source->describe();
  EXPECT_NE(source->describe().find("without edges, their nodes know themselves alone: 1"), std::string::npos);
}

TEST_F(TuFiles, AttributesAreBroughtToScaleByTrainingGraphs) {
  files["node_attributes"] = "1, 5\n1, 5\n1, 5\n3, 5\n3, 5\n9, 5\n1, 5\n1, 5\n3, 5\n3, 5\n";
  const auto source = open();
  EXPECT_EQ(source->sizes().at("features"), 5);
  Batch batch;
  source->fill(0, 1, batch);
  for (std::size_t i = 4; i < batch.numbers("features").size(); i += 5)
    EXPECT_EQ(batch.numbers("features")[i], 0) << "constant";
  files.erase("node_attributes");
  files.erase("node_labels");
  std::filesystem::remove(folder_ / "DS_node_labels.txt");
  std::filesystem::remove(folder_ / "DS_node_attributes.txt");
  EXPECT_EQ(open()->sizes().at("features"), 33) << "degrees";
}

TEST_F(TuFiles, MistakesAreNamed) {
  EXPECT_NE(said("A", "1, 11\n").find("DS_A.txt', line 1: a node is '11'; expected a whole number from 1 to 10"),
            std::string::npos);
  EXPECT_NE(said("A", "1, 4\n").find("an edge between node 1 of graph 1 and node 4 of graph 2"), std::string::npos);
  EXPECT_NE(said("A", "1, x\n").find("a node is 'x'; expected a whole number"), std::string::npos);
  EXPECT_NE(said("graph_labels", "1\n1\n1\n1\n1\n").find("all graphs are of class 1; expected two classes"),
            std::string::npos);
  EXPECT_NE(said("graph_labels", "1\n2\n").find("the graph is '3'; expected a whole number from 1 to 2"),
            std::string::npos);
  EXPECT_NE(said("graph_labels", "1\n2\n2\n1\n2\n1\n").find("graph 6 has no nodes"), std::string::npos);
  EXPECT_NE(said("graph_labels", "1\n2\n2\n2\n2\n").find("has no graph of class 0 to train on"), std::string::npos);
  EXPECT_NE(said("node_labels", "1\n").find("has 1 lines; expected one for each of the 10 nodes"), std::string::npos);
  EXPECT_NE(said("node_attributes", "a\n").find("an attribute is 'a'; expected a number"), std::string::npos);
  files.erase("graph_labels");
  std::filesystem::remove(folder_ / "DS_graph_labels.txt");
  EXPECT_NE(error_of([&] { open(); }).find("DS_graph_labels.txt"), std::string::npos);
}

}  // namespace
}  // namespace norma
