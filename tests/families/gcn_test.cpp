// Graph convolutional networks: placements by formula, gradients, over-smoothing, and a task whose best score is known.
#include <cmath>
#include <set>

#include "models/model_check.h"
#include "norma/store/safetensors.h"
#include "norma/store/safetensors_writer.h"
#include "norma/train/cohort.h"
#include "norma/train/data.h"
#include "norma/train/feeder.h"
#include "temporary_folder.h"

namespace norma {
namespace {

using test::error_of;

RunConfig block_run(std::int64_t layers, const std::string& scheme) {
  RunConfig config;
  config.model.family = "gcn";
  config.model.layers = layers;
  config.model.width = 16;
  config.model.scheme = scheme;
  config.train.lr = 1e-2;
  config.train.threads = 1;
  config.train.steps = 100;
  return config;
}

// A model of its usual task, with a graph in place.
struct Built {
  RunConfig config;
  Graph graph;
  Model model;
  std::unique_ptr<CpuSession> session;

  Built(RunConfig run, DType dtype) : config(std::move(run)) {
    const auto source = open_data(config);
    config.model.dtype = dtype;
    config = resolve_config(config, *source);
    model = build_model(graph, config.model, {.logits = true});
  }
};

TEST(Gcn, LayersAreGraphConvolutionsWiredByTheScheme) {
  const Built built(block_run(3, "x + f(norm(x))"), DType::f32);
  ASSERT_EQ(built.model.sites.size(), 3u);
  EXPECT_EQ(built.model.sites[2].name, "layers.2.gcn");
  EXPECT_EQ(built.model.sites[2].stream_out.shape(), (Shape{400, 1, 16}));
  EXPECT_EQ(built.model.logits.shape(), (Shape{400, 2}));
  EXPECT_EQ(built.config.model.batch, 1) << "a graph is read whole";
}

// Of every parameter of a model of a run's usual task, in double.
void check_model_gradients(RunConfig run) {
  const auto source = open_data(run);
  run.model.dtype = DType::f64;
  const ModelConfig config = resolve_config(run, *source).model;
  std::vector<ParameterSpec> specs;
  {
    Graph graph;
    specs = build_model(graph, config).parameters;
  }
  std::vector<std::string> names;
  for (const ParameterSpec& spec : specs) names.push_back(spec.name);
  const auto prepare = [&](CpuSession& session) {
    initialise(session, specs, 1);
    for (const ParameterSpec& spec : specs) {
      const RandomStream stream(2, spec.name);
      const std::span<double> tensor = session.tensor<double>(spec.name);
      for (std::size_t i = 0; i < tensor.size(); ++i) tensor[i] += 0.2 * stream.normal(i);
    }
    Batch batch;
    source->fill(0, 1, batch);
    for (const InputSpec& input : config.family->inputs(config)) {
      if (input.content == InputSpec::Content::numbers) {
        const Batch::Numbers& numbers = batch.numbers(input.name);
        session.write<double>(input.name, std::vector<double>(numbers.begin(), numbers.end()), 0);
      } else {
        session.write<std::int32_t>(input.name, batch.ids(input.name), 0);
      }
    }
  };
  test::check_gradients([&](Graph& g) { return build_model(g, config).loss; }, names,
                        {.tolerance = 1e-6, .most_elements = 3, .prepare = prepare});
}

TEST(Gcn, HasTheRightGradients) {
  for (const char* scheme : {"gcn", "gcn_res", "res_plus", "pairnorm", "gcnii", "pre", "x + f(x, edges = \"mean\")",
                             "x + f(x, edges = \"sum\")/10", "x + f(x, edges = \"max\")"}) {
    SCOPED_TRACE(scheme);
    RunConfig run = block_run(2, scheme);
    run.model.width = 5;
    run.data.settings = {{"nodes", 40}, {"taught", 3}, {"features", 4}, {"drop_edge", 0.2}};
    check_model_gradients(run);
  }
}

TEST(Gcn, EveryConvolutionHasTheRightGradients) {
  for (const GraphConvolution convolution : {GraphConvolution::sage, GraphConvolution::gin, GraphConvolution::gat}) {
    for (const char* scheme : {"gcn", "res_plus", "post"}) {
      SCOPED_TRACE(fmt::format("{} {}", static_cast<int>(convolution), scheme));
      RunConfig run = block_run(2, scheme);
      run.model.convolution = convolution;
      run.model.width = 6;
      run.model.heads = 2;
      run.data.settings = {{"nodes", 40}, {"taught", 3}, {"features", 4}};
      check_model_gradients(run);
    }
  }
}

TEST(Gcn, EveryConvolutionLearnsTheBlockModel) {
  for (const GraphConvolution convolution :
       {GraphConvolution::gcn, GraphConvolution::sage, GraphConvolution::gin, GraphConvolution::gat}) {
    SCOPED_TRACE(static_cast<int>(convolution));
    RunConfig config = block_run(2, "gcn_res");
    config.model.convolution = convolution;
    config.train.optimiser.weight_decay = 0.05;
    config.train.steps = 60;
    config.data.settings = {{"nodes", 600}, {"taught", 50}};
    const auto source = open_data(config);
    Cohort cohort(config, source);
    while (cohort.step() < config.train.steps) cohort.train_step();
    cohort.evaluate();
    EXPECT_GT(*cohort.member(0).evaluation_accuracy, 0.75);
    EXPECT_LT(*cohort.member(0).evaluation_accuracy, *source->best_accuracy() + 0.04);
  }
}

TEST(Gcn, OnlyGcnHasPartsOfAConvolution) {
  ModelConfig config = test::tiny("gcn", "gcnii");
  config.convolution = GraphConvolution::gat;
  const std::string said = error_of([&] {
    Graph graph;
    build_model(graph, config);
  });
  EXPECT_NE(said.find("f(x, weight = \"none\") is not for model.convolution = \"gat\""), std::string::npos) << said;
  config = test::tiny("gcn", "gcn");
  config.convolution = GraphConvolution::gat;
  config.heads = 5;
  EXPECT_NE(error_of([&] {
              Graph graph;
              build_model(graph, config);
            }).find("is not divisible by 5 heads"),
            std::string::npos);
}

TEST(Gcn, StudiesTheSchemesThatItsConvolutionFits) {
  for (const GraphConvolution convolution :
       {GraphConvolution::gcn, GraphConvolution::sage, GraphConvolution::gin, GraphConvolution::gat}) {
    for (const std::string& scheme : Family("gcn")->study.schemes) {
      ModelConfig config = test::tiny("gcn", scheme);
      config.convolution = convolution;
      const std::string said = error_of([&] {
        Graph graph;
        build_model(graph, config);
      });
      EXPECT_EQ(said.empty(), config.family->study.fits(config, scheme)) << scheme << ": " << said;
    }
  }
}

// Which edges are left out is a function of seed and batch, so a run that goes on sees the same ones.
TEST(Gcn, DropEdgeLeavesOutEdgesInBothDirections) {
  RunConfig config = block_run(2, "gcn");
  config.data.settings = {{"drop_edge", 0.3}};
  const auto source = open_data(config);
  Batch whole, batch, again, other;
  source->fill_evaluation(0, whole);
  source->fill(5, 1, batch);
  source->fill(5, 1, again);
  source->fill(6, 1, other);
  EXPECT_EQ(batch.ids("edges"), again.ids("edges"));
  EXPECT_NE(batch.ids("edges"), other.ids("edges"));
  const Batch::Ids& edges = batch.ids("edges");
  const std::size_t count = edges.size() / 2;
  std::set<std::pair<std::int32_t, std::int32_t>> pairs;
  std::vector<float> degrees(400, 0);
  for (std::size_t i = 0; i < count && edges[i] < 400; ++i) {
    pairs.emplace(edges[i], edges[count + i]);
    ++degrees[static_cast<std::size_t>(edges[i])];
  }
  for (const auto& [a, b] : pairs) EXPECT_TRUE(pairs.contains({b, a}));
  for (std::int32_t node = 0; node < 400; ++node) EXPECT_TRUE(pairs.contains({node, node}));
  EXPECT_EQ(batch.numbers("degrees"), degrees);
  const double share = static_cast<double>(pairs.size() - 400) / static_cast<double>(count - 400);
  EXPECT_NEAR(share, 0.7, 0.05);
  EXPECT_EQ(whole.ids("edges")[count - 1], 399) << "evaluation has all edges";
}

// A graph that does not change is neither copied nor staged again, and nothing that did change is passed over.
TEST(Gcn, TheGraphOfABatchIsStagedOnce) {
  for (const double drop : {0.0, 0.4}) {
    RunConfig config = block_run(1, "gcn");
    config.data.settings = {{"drop_edge", drop}};
    const auto source = open_data(config), another = open_data(config);
    config = resolve_config(config, *source);
    Graph g;
    const Model model = build_model(g, config.model, {.logits = true});
    g.output("loss", model.loss);
    CpuSession session(test::plain_plan(g), {.members = 2, .threads = 1});
    Feeder feeder(session, config.model, model.schedules);
    const std::vector<std::uint64_t> seeds = {1, 2};
    const auto check = [&](std::uint64_t index) {
      feeder.batch(*source, index, seeds);
      for (int member = 0; member < 2; ++member) {
        Batch expected;
        source->fill(index, seeds[static_cast<std::size_t>(member)], expected);
        for (const char* name : {"edges", "targets"})
          EXPECT_EQ(session.read<std::int32_t>(name, member), expected.ids(name)) << name;
        for (const char* name : {"features", "degrees"})
          EXPECT_EQ(session.read<float>(name, member), expected.numbers(name)) << name;
      }
    };
    check(0);
    session.tensor<float>("features", 1)[3] = 7;  // behind the session's back: it shows who writes
    feeder.batch(*source, 1, seeds);
    EXPECT_EQ(session.tensor<float>("features", 1)[3], 7) << "staged once";
    const std::vector<float> features = session.read<float>("features", 1);
    session.write<float>("features", features, 1);
    check(2);  // a write that the session knows of takes the mark away
    feeder.evaluation_batch(*source, 1);
    check(3);
    feeder.batch(*another, 3, seeds);  // of the same values, but nobody says so
    session.tensor<float>("features", 0)[3] = 7;
    check(3);
  }
}

TEST(Gcn, ARunWithDropEdgeGoesOnWithTheSameBits) {
  RunConfig config = block_run(2, "gcn");
  config.data.settings = {{"drop_edge", 0.5}};
  const auto weights_after = [&](Cohort& cohort, int steps) {
    while (cohort.step() < steps) cohort.train_step();
    return cohort.session().read<float>("layers.1.gcn.out.weight", 0);
  };
  Cohort whole(config, open_data(config)), first(config, open_data(config)), second(config, open_data(config));
  const std::vector<float> expected = weights_after(whole, 9);
  weights_after(first, 5);
  const test::TemporaryFolder folder;
  write_safetensors(folder / "half", first.checkpoint_tensors(), first.checkpoint_metadata());
  second.restore(SafetensorsFile(folder / "half"));
  EXPECT_EQ(weights_after(second, 9), expected);
}

// Without edges that say something the features alone remain, and the best score is that of a Gaussian.
TEST(Gcn, TheBlockModelHasABestScore) {
  RunConfig config = block_run(2, "gcn");
  config.data.settings = {{"inside", 1}, {"signal", 1.5}, {"nodes", 4000}};
  const double by_features = std::erfc(-1.5 / std::sqrt(2.0) / std::sqrt(2.0)) / 2;  // two means 1.5 sqrt(2) apart
  EXPECT_NEAR(*open_data(config)->best_accuracy(), by_features, 0.02);
  config.data.settings = {{"inside", 1}, {"signal", 0}};
  EXPECT_NEAR(*open_data(config)->best_accuracy(), 0.5, 1e-6);
  EXPECT_NEAR(*open_data(config)->optimum(), std::log(2.0), 1e-6);
  config.data.settings = {{"inside", 100}, {"degree", 12}, {"signal", 0}};
  EXPECT_GT(*open_data(config)->best_accuracy(), 0.99);
  config.data.settings = {};
  const double usual = *open_data(config)->best_accuracy();
  EXPECT_GT(usual, 0.85);
  EXPECT_LT(usual, 0.99);
}

TEST(Gcn, LearnsTheBlockModelNearlyUpToItsBestAccuracy) {
  RunConfig config = block_run(2, "gcn");
  config.train.optimiser.weight_decay = 0.05;
  config.data.settings = {{"nodes", 1000}, {"taught", 50}};
  const auto source = open_data(config);
  Cohort cohort(config, source);
  while (cohort.step() < config.train.steps) cohort.train_step();
  cohort.evaluate();
  EXPECT_GT(*cohort.member(0).evaluation_accuracy, *source->best_accuracy() - 0.1);
  EXPECT_LT(*cohort.member(0).evaluation_accuracy, *source->best_accuracy() + 0.03);
}

// Nodes grow alike with depth where nothing keeps them apart (over-smoothing: Li et al. 2018): all that remains of a
// stream under A^l is its first eigenvector, the roots of degrees. Measured is the share that is not.
TEST(Gcn, PlainLayersSmoothAndTheOthersDoNot) {
  const auto apart = [](const char* scheme) {
    RunConfig run = block_run(32, scheme);
    run.data.settings = {{"degree", 12}};  // no node stands alone, which would be an eigenvector of its own
    Built built(run, DType::f32);
    built.graph.output("out", built.model.sites.back().stream_out * 1.0);
    CpuSession session(test::plain_plan(built.graph), {.threads = 1});
    initialise(session, built.model.parameters, 1);
    Batch batch;
    open_data(built.config)->fill(0, 1, batch);
    for (const char* name : {"features", "degrees"}) session.write<float>(name, batch.numbers(name), 0);
    session.write<std::int32_t>("edges", batch.ids("edges"), 0);
    session.write<std::int32_t>("targets", batch.ids("targets"), 0);
    session.run();
    const std::span<float> x = session.tensor<float>("out");
    const Batch::Numbers& degrees = batch.numbers("degrees");
    double whole = 0, along = 0, length = 0;
    for (const float v : x) whole += static_cast<double>(v) * v;
    for (const float degree : degrees) length += degree;
    for (std::size_t c = 0; c < 16; ++c) {
      double dot = 0;
      for (std::size_t node = 0; node < 400; ++node) dot += x[node * 16 + c] * std::sqrt(degrees[node]);
      along += dot * dot / length;
    }
    return 1 - along / whole;
  };
  const double plain = apart("gcn");
  EXPECT_LT(plain, 0.02);
  EXPECT_GT(apart("gcnii"), 3 * plain);
  EXPECT_GT(apart("pairnorm"), 3 * plain);
}

TEST(Gcn, MistakesAreNamed) {
  ModelConfig config = test::tiny("gcn", "gcn");
  const auto said = [](const ModelConfig& c) {
    return error_of([&] {
      Graph graph;
      build_model(graph, c);
    });
  };
  ModelConfig many = config;
  many.batch = 4;
  EXPECT_EQ(said(many), "batch is 4; a gcn reads one graph, whole: expected 1");
  config.sizes.erase("edges");
  EXPECT_EQ(said(config), "model.sizes.edges is not given; expected that of the graph");
  ModelConfig other = test::tiny("gcn", "x + f(x, edges = \"most\")");
  EXPECT_NE(said(other).find("edges is 'most'; expected symmetric or mean or sum or max or none"), std::string::npos)
      << said(other);
}

}  // namespace
}  // namespace norma
