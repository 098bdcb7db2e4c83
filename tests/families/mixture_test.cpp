// A loss that is a mixture of two targets: what it is, its gradients, and a run that trains with it and resumes.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "models/model_check.h"
#include "norma/train/cohort.h"
#include "norma/train/data.h"
#include "norma/train/trainer.h"
#include "temporary_folder.h"

namespace norma {
namespace {

using test::fill_inputs;
using test::tiny;

double loss_of(const ModelConfig& config, std::span<const std::int32_t> targets, double share,
               std::span<const std::int32_t> second) {
  Graph graph;
  const Model model = build_model(graph, config);
  graph.output("loss", model.loss);
  CpuSession session(compile(graph, cpu_backend()), {.threads = 1});
  fill_inputs(session, config);
  initialise(session, model.parameters, 1);
  std::ranges::copy(targets, session.tensor<std::int32_t>("targets").begin());
  if (config.mixture) {
    std::ranges::copy(second, session.tensor<std::int32_t>("mixed_targets").begin());
    session.tensor<double>("mixture")[0] = share;
  }
  session.run();
  return session.tensor<double>("loss")[0];
}

TEST(Mixture, IsBothLossesByTheirShares) {
  for (const char* family : {"vit", "mlp"}) {
    ModelConfig config = tiny(family, "pre", DType::f64);
    config.smoothing = false;
    std::vector<std::int32_t> first, second;
    for (std::int64_t row = 0; row < config.batch; ++row) {
      first.push_back(static_cast<std::int32_t>(row % config.classes));
      second.push_back(static_cast<std::int32_t>((row + 1) % config.classes));
    }
    const double a = loss_of(config, first, 0, first), b = loss_of(config, second, 0, second);
    EXPECT_NE(a, b) << family;
    config.mixture = true;
    EXPECT_NEAR(loss_of(config, first, 0.3, second), 0.7 * a + 0.3 * b, 1e-12) << family;
    EXPECT_EQ(loss_of(config, first, 0, first), a) << family << ": held-out losses keep their bits";
  }
}

TEST(Mixture, HasTheRightGradients) {
  ModelConfig config = tiny("mlp", "pre", DType::f64);
  config.mixture = true;
  Graph names;
  const std::vector<ParameterSpec> specs = build_model(names, config).parameters;
  std::vector<std::string> parameters;
  for (const ParameterSpec& spec : specs) parameters.push_back(spec.name);
  const auto prepare = [&](CpuSession& session) {
    fill_inputs(session, config);
    initialise(session, specs, 1);
    session.tensor<double>("mixture")[0] = 0.4;
    const std::span<std::int32_t> second = session.tensor<std::int32_t>("mixed_targets");
    for (std::size_t i = 0; i < second.size(); ++i)
      second[i] = static_cast<std::int32_t>((3 * i + 1) % static_cast<std::size_t>(config.classes));
  };
  test::check_gradients([&](Graph& g) { return build_model(g, config).loss; }, parameters,
                        {.most_elements = 2, .fuse = true, .prepare = prepare});
}

// Of all that is drawn nothing depends on where a run was stopped.
TEST(Mixture, ARunThatVariesAndMixesImagesResumesWithTheSameBits) {
  const test::TemporaryFolder folder;
  std::string pixels = {0, 0, 8, 3, 0, 0, 0, 40, 0, 0, 0, 8, 0, 0, 0, 8}, labels = {0, 0, 8, 1, 0, 0, 0, 40};
  for (int i = 0; i < 40 * 64; ++i) pixels += static_cast<char>(i * 7919 % 251 / (1 + i / 64 % 2));
  for (int i = 0; i < 40; ++i) labels += static_cast<char>(i % 2);
  RunConfig config;
  for (const char* setting :
       {"model.family=vit", "model.layers=1", "model.width=16", "model.heads=2", "model.batch=8", "model.sizes.patch=4",
        "train.steps=12", "train.checkpoint_every=4", "train.log_every=2", "train.threads=1", "train.evaluate_every=6"})
    override_config(config, setting);
  config.data.task = "images";
  config.data.path = folder.write("images", pixels);
  config.data.target_path = folder.write("labels", labels);
  config.data.settings = {{"crop", 1}, {"flip", 1}, {"cutout", 2}, {"mixup", 0.5}};
  struct Stops final : RunObserver {
    void stepped(const Cohort& cohort, double) override { stop = cohort.step() == 7; }
    std::atomic<bool> stop{false};
  } stops;
  RunObserver silent;
  const std::atomic<bool> go{false};
  EXPECT_EQ(run_training({.config = config, .directory = folder / "broken"}, stops, stops.stop), RunEnd::interrupted);
  EXPECT_EQ(run_training({.config = config, .directory = folder / "broken"}, silent, go), RunEnd::finished);
  config.train.threads = 3;
  EXPECT_EQ(run_training({.config = config, .directory = folder / "whole"}, silent, go), RunEnd::finished);
  const auto tensors = [&](const std::string& run) {  // behind the header, which says how many threads there were
    const std::string file = test::read_file(RunView(folder / run).checkpoint_path(12));
    std::uint64_t header = 0;
    std::memcpy(&header, file.data(), sizeof header);
    return file.substr(8 + header);
  };
  EXPECT_TRUE(tensors("whole") == tensors("broken"));
  const RunResult result = read_result(RunView(folder / "whole").result(), "result.json");
  EXPECT_TRUE(std::isfinite(result.members.at(0).evaluation_loss.value()));
}

}  // namespace
}  // namespace norma
