// The table of families: every row builds what it says, and reads what its data write.
#include <set>

#include "models/model_check.h"
#include "norma/train/cohort.h"
#include "norma/train/data.h"
#include "norma/train/feeder.h"

namespace norma {
namespace {

using test::tiny;

class Families : public testing::TestWithParam<std::string> {};

RunConfig run_of(const std::string& family) {
  RunConfig config;
  config.model.family = Family(family);
  config.model.layers = 2;
  config.model.width = 16;
  config.model.heads = 2;
  config.model.batch = config.model.family->data == "noised" ? 32 : 3;  // squared errors of three samples say little
  if (config.model.family->batch > 0) config.model.batch = config.model.family->batch;
  config.model.time = 12;
  config.train.steps = 2;
  config.train.threads = 1;
  return config;
}

TEST_P(Families, BuildTheInputsOutputsAndSitesThatTheirRowNames) {
  const ModelConfig config = tiny(Family(GetParam()), "pre");
  Graph graph;
  const Model model = build_model(graph, config, {.logits = true});
  for (const InputSpec& input : config.family->inputs(config)) {
    const Wire wire = graph.find(input.name);
    ASSERT_TRUE(wire) << input.name;
    EXPECT_EQ(wire.shape(), input.shape()) << input.name;
    EXPECT_EQ(wire.dtype(), input.content == InputSpec::Content::numbers ? DType::f32 : DType::i32) << input.name;
  }
  EXPECT_EQ(model.logits.shape(), config.family->output(config).shape);
  EXPECT_EQ(model.loss.shape(), Shape{1});
  std::vector<std::string> expected, built;
  for (const StackSites& stack : config.family->sites(config)) {
    for (const std::string& name : stack.names()) expected.push_back(name);
  }
  for (const SublayerSite& site : model.sites) built.push_back(site.name);
  EXPECT_EQ(built, expected);
  EXPECT_EQ(model.sites.back().stream_out.shape().rows(), config.batch * config.family->positions(config));
  for (const SublayerSite& site : model.sites)
    EXPECT_TRUE(graph.find(site.name + "." + site.kind->last_weight())) << site.name << " has its last weight";
}

TEST_P(Families, ReadWhatTheirUsualTaskWrites) {
  RunConfig config = settle_task(run_of(GetParam()));
  const auto source = open_data(config);
  take_sizes(*source, config.model);
  Batch batch;
  source->fill(0, 1, batch);
  std::set<std::string> read;
  for (const InputSpec& input : config.model.family->inputs(config.model)) {
    read.insert(input.name);
    if (!batch.has(input.name)) {
      EXPECT_EQ(input.content, InputSpec::Content::lengths) << input.name;
      continue;
    }
    const BatchTensor& tensor = batch.tensor(input.name);
    EXPECT_EQ(tensor.shape, input.shape()) << input.name;
    EXPECT_EQ(tensor.holds_ids(), input.content != InputSpec::Content::numbers) << input.name;
    if (input.content == InputSpec::Content::ids) {
      for (const std::int32_t id : batch.ids(input.name)) EXPECT_TRUE(id >= 0 && id < input.below) << input.name;
    }
  }
  // Lengths of an answer that the loss ignores anyway are all that a task may write for nobody.
  for (const BatchTensor& tensor : batch.tensors())
    EXPECT_TRUE(read.contains(tensor.name) || tensor.name == "lengths") << tensor.name;
}

TEST_P(Families, TrainOnTheirUsualTask) {
  RunConfig config = run_of(GetParam());
  config.train.steps = 30;
  config.train.lr = 1e-2;
  Cohort cohort(config, open_data(config));
  double first = 0;
  while (cohort.step() < config.train.steps) {
    EXPECT_TRUE(cohort.train_step().empty());
    if (cohort.step() == 1) first = cohort.member(0).loss;
  }
  EXPECT_LT(cohort.member(0).best_loss, first);
  EXPECT_GT(cohort.flops_per_step(), 0);
  EXPECT_GT(cohort.tokens_per_step(), 0);
}

TEST_P(Families, NameWhatABatchLacksOrHasInAnotherShape) {
  const ModelConfig config = tiny(Family(GetParam()), "pre");
  Graph graph;
  const Model model = build_model(graph, config);
  graph.output("loss", model.loss);
  const auto session = make_session(test::plain_plan(graph), {.members = 1, .threads = 1});
  Feeder feeder(*session, config, model.schedules);
  const InputSpec first = config.family->inputs(config).front();
  Batch empty, slip, wrong;
  slip.ids(first.name + "s", {1});
  EXPECT_EQ(test::error_of([&] { feeder.write(empty, 0); }),
            fmt::format("the data has no '{}', which a model of the family {} reads; it has nothing", first.name,
                        GetParam()));
  EXPECT_EQ(
      test::error_of([&] { feeder.write(slip, 0); }),
      fmt::format("the data has no '{0}', which a model of the family {1} reads (did you mean '{0}s'?); it has {0}s",
                  first.name, GetParam()));
  wrong.ids(first.name, {2, 3});
  const bool numbers = first.content == InputSpec::Content::numbers;
  EXPECT_EQ(test::error_of([&] { feeder.write(wrong, 0); }),
            fmt::format("'{}' of the data is ids[2, 3]; a model of the family {} reads {}{}", first.name, GetParam(),
                        numbers ? "numbers" : "ids", first.shape().str()));
}

TEST(FamilyTable, AnUnknownTensorOfABatchIsNamed) {
  Batch batch;
  batch.ids("tokens", {2, 3});
  EXPECT_EQ(test::error_of([&] { batch.ids("token"); }),
            "the batch has no 'token' (did you mean 'tokens'?); it has tokens");
  EXPECT_EQ(test::error_of([&] { batch.numbers("tokens"); }), "'tokens' of the batch holds ids; expected numbers");
}

TEST(FamilyTable, EveryTaskSuitsSomebodyAndEveryFamilyHasOneWithoutAFile) {
  std::set<std::string> read;
  for (const FamilyRow& row : families()) {
    const std::vector<std::string> tasks = tasks_for(row.data);
    EXPECT_TRUE(std::ranges::any_of(tasks, [](const std::string& task) { return !reads_files(task); })) << row.name;
    read.insert(tasks.begin(), tasks.end());
  }
  for (const std::string& task : task_names()) EXPECT_TRUE(read.contains(task)) << task;
}

TEST(FamilyTable, ASizeThatAFamilyDoesNotHaveIsNamed) {
  ModelConfig config = tiny("decoder", "pre");
  config.sizes["features"] = 3;
  EXPECT_EQ(test::error_of([&] {
              Graph graph;
              build_model(graph, config);
            }),
            "model.sizes.features: the family decoder has no such size");
}

std::vector<std::string> names_of_table() {
  std::vector<std::string> names;
  for (const FamilyRow& row : families()) names.push_back(row.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Table, Families, testing::ValuesIn(names_of_table()),
                         [](const auto& given) { return given.param; });

}  // namespace
}  // namespace norma
