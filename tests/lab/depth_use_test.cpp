// What layers are worth, on models where the answer is known.
#include "norma/lab/depth_use.h"

#include <gtest/gtest.h>

#include "lab/lab_check.h"
#include "norma/core/random.h"
#include "norma/lab/lens.h"
#include "norma/lab/paths.h"
#include "norma/store/safetensors_writer.h"
#include "norma/train/cohort.h"
#include "temporary_folder.h"

namespace norma {
namespace {

// Makes the branches of some layers return nothing; what projects the stream stays.
class Hollow final : public Weights {
 public:
  Hollow(std::shared_ptr<const Weights> weights, std::vector<std::string> layers)
      : weights_(std::move(weights)), layers_(std::move(layers)) {}
  int members() const override { return weights_->members(); }
  void load(Session& session, const std::vector<ParameterSpec>& specs) const override {
    weights_->load(session, specs);
    for (const ParameterSpec& spec : specs) {
      for (const std::string& layer : layers_) {
        const bool projects = spec.name.find(".skip.") != std::string::npos;
        if (!spec.name.starts_with(layer + ".") || spec.role == "norm" || projects) continue;
        for (int member = 0; member < session.members(); ++member)
          transform(session, spec.name, member, [](std::size_t, double) { return 0.0; });
      }
    }
  }

 private:
  std::shared_ptr<const Weights> weights_;
  std::vector<std::string> layers_;
};

TEST(DepthUse, OfLayersThatDoNothingIsNothing) {
  Subject subject = test::theory_subject(test::theory_model("pre", 6, 32, 16), 2);
  subject.weights = std::make_shared<Hollow>(subject.weights, std::vector<std::string>{"layers.1", "layers.4"});
  const DepthUse use = measure_depth_use(subject, {.batches = 2});
  ASSERT_EQ(use.deletion.size(), 6u);
  ASSERT_EQ(use.swap.size(), 5u);
  for (const std::size_t layer : {std::size_t{1}, std::size_t{4}}) {
    EXPECT_NEAR(use.deletion[layer][0], 0, 1e-6);
    EXPECT_NEAR(use.influence[layer][0], 0, 1e-6);
    EXPECT_NEAR(use.width_equivalence[layer][0], 0, 1e-6) << "the layer after one that does nothing reads the same";
  }
  EXPECT_NEAR(use.swap[0][0], 0, 1e-6);
  EXPECT_GT(std::abs(use.deletion[0][0]), 1e-4);
  EXPECT_GT(std::abs(use.swap[2][0]), 1e-6);
  EXPECT_GT(std::abs(use.width_equivalence[2][0]), 1e-6);
  EXPECT_NEAR(use.kept.back()[0], use.loss[0], 1e-9);
  EXPECT_NEAR(use.angular_distance[1][2], 0, 1e-3);
  EXPECT_GT(use.angular_distance[0][6], use.angular_distance[0][1]);
}

// Of a U-Net every layer on the way down, in the middle and on the way up.
TEST(DepthUse, CoversAllStacksThatOneStreamGoesThrough) {
  ModelConfig model{.family = "unet", .layers = 3, .width = 6, .heads = 2, .batch = 2, .scheme = "x + f(norm(x))"};
  model.norm = NormKind::group;
  model.sizes = {{"image_height", 4}, {"image_width", 8}, {"image_channels", 3}, {"levels", 2}, {"attention", 2}};
  Subject subject = initial_subject(model, random_data(model), {1});
  subject.weights =
      std::make_shared<Hollow>(subject.weights, std::vector<std::string>{"middle.layers.1", "up.layers.1"});
  const DepthUse use = measure_depth_use(subject, {.batches = 2});
  const std::vector<std::string> names = layers_of_last_stacks(subject.model);
  ASSERT_EQ(names.size(), 10u);
  EXPECT_EQ(names.front(), "down.layers.0");
  EXPECT_EQ(names[3], "middle.layers.0");
  EXPECT_EQ(names.back(), "up.layers.4");
  ASSERT_EQ(use.deletion.size(), names.size());
  for (std::size_t layer = 0; layer < names.size(); ++layer) {
    if (names[layer] == "middle.layers.1" || names[layer] == "up.layers.1")
      EXPECT_NEAR(use.deletion[layer][0], 0, 1e-6) << names[layer];
    else
      EXPECT_GT(std::abs(use.deletion[layer][0]), 1e-5) << names[layer];
  }
  ASSERT_EQ(use.swap.size(), names.size() - 1);
  EXPECT_GT(std::abs(use.swap[0][0]), 1e-6) << "two blocks of one level";
  EXPECT_TRUE(std::isnan(use.swap[1][0])) << "the next one reads smaller images";
  EXPECT_GT(std::abs(use.width_equivalence[0][0]), 1e-6);
  EXPECT_NEAR(use.swap[3][0] - use.deletion[4][0], 0, 1e-6)
      << "an order of the middle, whose second layer does nothing";
  EXPECT_TRUE(std::isnan(use.swap[4][0])) << "the next one belongs to the way up";
  EXPECT_NEAR(use.kept.back()[0], use.loss[0], 1e-9);
}

TEST(DepthUse, CrossesWhereTheLossDoes) {
  EXPECT_DOUBLE_EQ(crossing_depth({3, 2, 1, 1}, 1.5), 1.5);
  EXPECT_DOUBLE_EQ(crossing_depth({1, 1, 1, 1}, 1.1), 0);
  EXPECT_DOUBLE_EQ(crossing_depth({5, 4, 3, 1}, 1.2), 2.9);
  EXPECT_DOUBLE_EQ(crossing_depth({3, 1, 2, 1}, 1.5), 0.75) << "the least number of layers that is enough";
}

TEST(EffectiveDepth, CountsFromGuessingByFrequency) {
  EXPECT_DOUBLE_EQ(effective_depth({9, 2, 1, 1}, 3).value(), 1.8) << "1 + 0.1*(3 - 1) between 2 and 1";
  EXPECT_DOUBLE_EQ(effective_depth({90, 3, 2, 1}, 3).value(), effective_depth({9, 30, 2, 1}, 3).value())
      << "how much worse than guessing does not count";
  EXPECT_DOUBLE_EQ(effective_depth({1.1, 1, 1, 1}, 3).value(), 0) << "the embedding alone knows nearly all";
  EXPECT_EQ(effective_depth({3, 3, 4, 2.99}, 3), std::nullopt)
      << "a spike in a flat curve of a model at guessing level";
  const double none = std::numeric_limits<double>::infinity();
  EXPECT_DOUBLE_EQ(effective_depth({3, 2, 1, 1}, none).value(), 1.8) << "where guessing has no loss";
}

TEST(EffectiveDepth, OfASingleModelCoversHeldOutSampling) {
  // Losses of 8 batches scatter; the curve that they scatter about crosses at 1.8.
  const std::vector<double> truth = {3, 2, 1, 1};
  int covered = 0, width = 0;
  for (std::uint64_t trial = 0; trial < 400; ++trial) {
    std::vector<std::vector<double>> losses(4, std::vector<double>(8));
    const RandomStream random(trial, "held out");
    std::vector<double> guessing(8, 3);
    for (std::size_t batch = 0; batch < 8; ++batch) {
      for (std::size_t k = 0; k < 4; ++k) losses[k][batch] = truth[k] + 0.1 * random.normal(4 * batch + k);
    }
    const Estimate depth = effective_depth_over_batches(losses, guessing);
    covered += depth.low <= 1.8 && 1.8 <= depth.high ? 1 : 0;
    width += depth.high - depth.low > 0.02 && depth.high - depth.low < 0.5 ? 1 : 0;
  }
  EXPECT_GE(covered, 360) << "of 400, at 95 %";
  EXPECT_EQ(width, 400);
}

TEST(DepthUse, OfAModelThatDidNotLearnIsNothing) {
  const DepthUse use = measure_depth_use(test::theory_subject(test::theory_model("pre", 4, 32, 16), 2), {.batches = 2});
  EXPECT_FALSE(use.learned);
  EXPECT_EQ(use.effective_depth.high, 0);
}

TEST(Lens, OfAllLayersIsTheModel) {
  for (const char* scheme : {"pre", "post", "residual"}) {
    const LogitLens lens = measure_lens(test::theory_subject(test::theory_model(scheme, 4, 32, 16), 2));
    ASSERT_EQ(lens.divergence.size(), 5u);
    EXPECT_NEAR(lens.divergence[4][0], 0, 1e-6) << scheme;
    EXPECT_DOUBLE_EQ(lens.agreement[4][1], 1) << scheme;
    EXPECT_GT(lens.divergence[0][0], lens.divergence[3][0]) << scheme;
  }
}

TEST(Paths, OfUncorrelatedBranchesAreBinomial) {
  // x + f(norm(x)) with equal parts of skip and branch at every sublayer would have its mass at half the branches;
  // with branches of a tenth of that, at a share of 0.1 / 1.1.
  const auto mean_share = [](const char* scheme) {
    const PathLengths found = measure_path_lengths(test::theory_subject(test::theory_model(scheme, 6, 64, 16), 2));
    double sum = 0;
    for (const std::vector<double>& share : found.share) sum += share[0];
    EXPECT_NEAR(sum, 1, 1e-9);
    return found.mean_length[0] / 12;
  };
  const double strong = mean_share("x + f(x)"), weak = mean_share("x + 0.01*f(x)");
  EXPECT_LT(weak, 0.02);
  EXPECT_GT(strong, 0.2);
  EXPECT_GT(mean_share("post"), weak);
}

// A model trained for a few steps on a task that its embedding alone cannot solve.
TEST(DepthUse, OfATrainedModelIsPositive) {
  RunConfig config;
  config.model.layers = 3;
  config.model.width = 32;
  config.model.heads = 2;
  config.model.vocabulary = 0;
  config.model.batch = 8;
  config.model.time = 32;
  config.data.task = "grammar";
  config.data.evaluation_batches = 2;
  config.train.steps = 60;
  config.train.lr = 3e-3;
  config.train.schedule.warmup = 10;
  const std::shared_ptr<const Source> source = open_source(config.data, {config.model.batch, config.model.time, 0});
  Cohort cohort(config, source);
  for (int step = 0; step < 60; ++step) cohort.train_step();
  Subject subject{.model = cohort.config().model, .source = source, .seeds = {1}, .weights = nullptr};
  subject.weights = weights_of(cohort.session(), cohort.training_step().parameters);
  const DepthUse use = measure_depth_use(subject);
  EXPECT_GT(use.loss_hollow[0], use.loss[0]);
  EXPECT_TRUE(use.learned);
  EXPECT_GT(use.effective_depth.mean, 0);
  EXPECT_LE(use.effective_depth.mean, 3);
  EXPECT_GT(use.effective_depth.high, use.effective_depth.low) << "over held-out batches";
  const Probes probes = measure_probes(subject);
  ASSERT_EQ(probes.share.size(), 4u);
  EXPECT_GT(probes.targets, 0);
  EXPECT_GT(probes.share[3][0], 1.0 / static_cast<double>(source->vocabulary()));

  const test::TemporaryFolder folder;
  const std::string path = folder / "checkpoint.safetensors";
  write_safetensors(path, cohort.checkpoint_tensors(), cohort.checkpoint_metadata());
  const StoredModel stored = open_stored_model(path);
  Subject loaded = subject;
  loaded.weights = stored.weights;
  EXPECT_EQ(stored.step, 60);
  EXPECT_DOUBLE_EQ(measure_depth_use(loaded).loss[0], use.loss[0]);
}

}  // namespace
}  // namespace norma
