// norma sample as a process: a denoiser trained, sampled and judged; pictures, pages, mistakes.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/process.h"

namespace norma {
namespace {

using test::Ended;
using test::TemporaryFolder;
namespace fs = std::filesystem;

Ended train_denoiser(const TemporaryFolder& folder, const std::string& out, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"train",
                                        "--out",
                                        out,
                                        "--quiet",
                                        "--model.layers=2",
                                        "--model.width=16",
                                        "--model.heads=2",
                                        "--model.batch=16",
                                        "--train.steps=40",
                                        "--train.lr=3e-3",
                                        "--train.threads=1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return test::run(folder, arguments);
}

TEST(Sample, PointsBecomeAPictureAPageAndADistance) {
  const TemporaryFolder folder;
  const std::string run = folder / "points";
  const Ended trained =
      train_denoiser(folder, run, {"--model.family=dit", "--model.scheme=adaln_zero", "--train.ema=0.9"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  const std::string picture = folder / "points.png";
  const Ended said = test::run(folder, {"sample", run, "--steps", "10", "--count", "40", "--out", picture, "--json"});
  ASSERT_EQ(said.code, 0) << said.err;
  const nlohmann::json result = nlohmann::json::parse(said.out);
  EXPECT_EQ(result.at("samples"), 40);
  EXPECT_LE(result.at("mixture").at("energy_distance").at("low"),
            result.at("mixture").at("energy_distance").at("high"));
  EXPECT_EQ(test::read_file(picture).substr(1, 3), "PNG");
  EXPECT_TRUE(fs::exists(fs::path(run) / "samples.png"));
  EXPECT_NE(test::read_file((fs::path(run) / "report.html").string()).find("data:image/png;base64,"),
            std::string::npos);
  const Ended guided = test::run(folder, {"sample", run, "--steps", "5", "--guidance", "2", "--sampler", "ddpm"});
  EXPECT_EQ(guided.code, 0) << guided.err;
}

// The mean is judged on the held-out points that the loss is of: otherwise 14 of these 16 pass for models that learned,
// since the mean happens to lose more on the points that they train on.
TEST(Sample, AModelThatNeverMovedHasNotLearned) {
  const TemporaryFolder folder;
  const Ended trained = test::run(
      folder, {"train", "--family", "dit", "--seeds", "16", "--out", folder / "run", "--json", "--train.lr=0",
               "--train.steps=2", "--model.layers=2", "--model.width=16", "--model.heads=2", "--model.batch=4"});
  ASSERT_EQ(trained.code, 0) << trained.err;
  int learned = 0;
  const nlohmann::json result = nlohmann::json::parse(trained.out);
  for (const auto& member : result.at("members")) learned += member.at("verdict") != "did not learn" ? 1 : 0;
  EXPECT_LE(learned, 5) << "64 numbers are few: some weights suit them by chance";
}

TEST(Sample, ImagesAreJudgedByAClassifierOfOurOwn) {
  const TemporaryFolder folder;
  const std::vector<std::string> data = {"--data.task=shapes", "--data.settings.size=8", "--data.settings.classes=3"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), data.begin(), data.end());
    return more;
  };
  const Ended denoiser = train_denoiser(folder, folder / "unet", with({"--model.family=unet", "--model.scheme=unet"}));
  ASSERT_EQ(denoiser.code, 0) << denoiser.err;
  const Ended judge = train_denoiser(folder, folder / "judge", with({"--model.family=vit", "--model.scheme=pre"}));
  ASSERT_EQ(judge.code, 0) << judge.err;
  const Ended said = test::run(
      folder, {"sample", folder / "unet", "--steps", "4", "--count", "48", "--judge", folder / "judge", "--json"});
  ASSERT_EQ(said.code, 0) << said.err;
  const nlohmann::json frechet = nlohmann::json::parse(said.out).at("frechet");
  EXPECT_GT(frechet.at("distance").at("value"), 0);
  EXPECT_GE(frechet.at("floor"), 0);
  EXPECT_EQ(frechet.at("features"), 16);
}

// What is not finite had a Frechet distance of 0, that of perfect samples.
TEST(Sample, OfABrokenModelIsNoSample) {
  const TemporaryFolder folder;
  const std::vector<std::string> data = {"--data.task=shapes", "--data.settings.size=8", "--data.settings.classes=3"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.end(), data.begin(), data.end());
    return more;
  };
  ASSERT_EQ(train_denoiser(folder, folder / "unet",
                           with({"--model.family=unet", "--model.scheme=unet", "--train.lr=1e6", "--train.clip=0",
                                 "--train.optimiser=sgd"}))
                .code,
            0);
  ASSERT_EQ(train_denoiser(folder, folder / "judge", with({"--model.family=vit", "--model.scheme=pre"})).code, 0);
  const Ended said =
      test::run(folder, {"sample", folder / "unet", "--steps", "4", "--count", "5", "--judge", folder / "judge"});
  EXPECT_EQ(said.code, 2) << said.out;
  EXPECT_NE(said.err.find("5 of 5 samples are not finite"), std::string::npos) << said.err;
  EXPECT_FALSE(fs::exists(fs::path(folder / "unet") / "samples.png"));
}

TEST(Sample, MistakesAreNamed) {
  const TemporaryFolder folder;
  const std::string run = folder / "points";
  ASSERT_EQ(
      train_denoiser(folder, run, {"--model.family=dit", "--diffusion.conditional=false", "--train.steps=2"}).code, 0);
  struct Case {
    std::vector<std::string> arguments;
    std::string error;
  };
  const Case cases[] = {
      {{"sample", run, "--steps", "1001"}, "1001 steps were asked for"},
      {{"sample", run, "--guidance", "2"}, "needs a model that was told classes"},
      {{"sample", run, "--class", "1"}, "the model was not told classes"},
      {{"sample", run, "--sampler", "ddin"}, "did you mean 'ddim'"},
      {{"sample", run, "--sampler", "ddpm", "--eta", "0.5"}, "--sampler ddpm is --eta 1"},
      {{"sample", folder / "nowhere"}, "there is no run"},
      {{"train", "--model.family=dit", "--diffusion.prediction=noise"}, "prediction"},
      {{"train", "--model.family=dit", "--diffusion.schedule=cosinus"}, "did you mean 'cosine'"},
      {{"train", "--model.family=dit", "--diffusion.drop=1"}, "expected a number from 0 to 0.99"},
      {{"train", "--model.family=unet", "--model.sizes.levels=2"}, "cannot be halved"},
  };
  for (const Case& one : cases) {
    const Ended said = test::run(folder, one.arguments);
    EXPECT_EQ(said.code, 2) << one.error;
    EXPECT_NE(said.err.find(one.error), std::string::npos) << said.err;
  }
}

}  // namespace
}  // namespace norma
