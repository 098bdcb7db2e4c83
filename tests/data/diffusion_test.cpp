// Noise schedules, samples behind noise, and what is known of a mixture behind noise.
#include "norma/data/diffusion.h"

#include <gtest/gtest.h>

#include <cmath>

#include "data/draws.h"
#include "data/settings.h"
#include "error_of.h"
#include "norma/data/gaussian_mixture.h"
#include "norma/data/source.h"

namespace norma {
namespace {

using test::error_of;

TEST(NoiseSchedule, LinearAndCosineAreThoseOfThePapers) {
  const NoiseSchedule linear(NoiseShape::linear, 1000), cosine(NoiseShape::cosine, 1000);
  EXPECT_NEAR(linear.kept(0), 1 - 1e-4, 1e-12);
  EXPECT_NEAR(linear.kept(1), (1 - 1e-4) * (1 - 1e-4 - (0.02 - 1e-4) / 999), 1e-12);
  EXPECT_NEAR(linear.kept(999), 4.0358e-5, 1e-8) << "Ho et al.: nothing is left of the sample";
  const double start = std::cos(0.008 / 1.008 * M_PI / 2), middle = std::cos((0.5 + 0.008) / 1.008 * M_PI / 2);
  EXPECT_NEAR(cosine.kept(499), middle * middle / (start * start), 1e-12);
  EXPECT_LT(cosine.kept(999), 1e-5);
  for (std::int64_t t = 0; t < 1000; ++t)
    EXPECT_NEAR(linear.alpha(t) * linear.alpha(t) + linear.sigma(t) * linear.sigma(t), 1, 1e-12);
  EXPECT_NEAR(NoiseSchedule(NoiseShape::linear, 100).kept(99), linear.kept(999), 3e-5) << "in proportion";
  EXPECT_EQ(error_of([] { NoiseSchedule(NoiseShape::linear, 0); }), "a noise schedule of 0 steps; expected at least 1");
}

TEST(NoiseSchedule, UnknownNamesAreNamed) {
  EXPECT_NE(error_of([] { parse_prediction("epsilo"); }).find("epsilon"), std::string::npos);
  EXPECT_NE(error_of([] { parse_noise_shape("cosin"); }).find("cosine"), std::string::npos);
}

TEST(Denoised, EveryPredictionGivesBackSampleAndNoise) {
  for (const Predicted prediction : {Predicted::epsilon, Predicted::x0, Predicted::v}) {
    const double alpha = 0.6, sigma = 0.8, clean = 0.7, noise = -1.3;
    const double answer = answer_for(prediction, clean, noise, alpha, sigma);
    const Denoised found = denoised(prediction, answer, alpha * clean + sigma * noise, alpha, sigma);
    EXPECT_NEAR(found.clean, clean, 1e-12);
    EXPECT_NEAR(found.noise, noise, 1e-12);
  }
}

std::unique_ptr<Source> open_noised(DataConfig config, std::int64_t batch) {
  return open_source(config, {.batch = batch, .time = 1, .source_time = 0, .noised = true});
}

DataConfig mixture_config(Predicted prediction = Predicted::epsilon, bool conditional = true) {
  DataConfig config{.task = "mixture"};
  config.diffusion.prediction = prediction;
  config.diffusion.conditional = conditional;
  return config;
}

TEST(Noised, IsAFunctionOfSeedBatchAndRow) {
  const auto source = open_noised(mixture_config(), 33);
  Batch a, b, other;
  source->fill(5, 7, a);
  source->fill(4, 7, other);
  source->fill(5, 7, b);
  source->fill(5, 8, other);
  for (const char* name : {"noised", "timestep", "answer"}) {
    EXPECT_EQ(a.numbers(name), b.numbers(name)) << name;
    EXPECT_NE(a.numbers(name), other.numbers(name)) << name;
  }
  EXPECT_EQ(a.ids("class"), b.ids("class"));
  EXPECT_EQ(a.tensor("noised").shape, (Shape{33, 1, 1, 2}));
}

// The clean sample follows from what is asked and what is shown, and lies where the mixture says.
TEST(Noised, AnswersFitWhatIsShown) {
  for (const Predicted prediction : {Predicted::epsilon, Predicted::x0, Predicted::v}) {
    const DataConfig config = mixture_config(prediction);
    const auto source = open_noised(config, 512);
    const NoiseSchedule schedule(config.diffusion);
    Batch batch;
    source->fill(0, 1, batch);
    double clean = 0, noise = 0;
    std::int64_t hidden = 0;
    for (std::size_t i = 0; i < 1024; ++i) {
      const auto t = static_cast<std::int64_t>(batch.numbers("timestep")[i / 2]);
      if (schedule.alpha(t) < 0.3 || schedule.sigma(t) < 0.3) continue;
      const Denoised found = denoised(prediction, batch.numbers("answer")[i], batch.numbers("noised")[i],
                                      schedule.alpha(t), schedule.sigma(t));
      EXPECT_LT(std::abs(found.clean), 2.5);
      clean += found.clean * found.clean;
      noise += found.noise * found.noise;
      ++hidden;
    }
    EXPECT_NEAR(clean / static_cast<double>(hidden), 1, 0.2);
    EXPECT_NEAR(noise / static_cast<double>(hidden), 1, 0.25);
  }
}

TEST(Noised, ClassesAreHiddenAsOftenAsAsked) {
  DataConfig config = mixture_config();
  config.diffusion.drop = 0.25;
  const auto source = open_noised(config, 4000);
  Batch batch;
  source->fill(0, 1, batch);
  const auto hidden = std::count(batch.ids("class").begin(), batch.ids("class").end(), 8);
  EXPECT_NEAR(static_cast<double>(hidden) / 4000, 0.25, 0.03);
  EXPECT_EQ(source->sizes().at("classes"), 8);
  const auto untold = open_noised(mixture_config(Predicted::epsilon, false), 8);
  EXPECT_FALSE(untold->sizes().contains("classes"));
  Batch plain;
  untold->fill(0, 1, plain);
  EXPECT_FALSE(plain.has("class"));
}

TEST(Noised, HeldOutTimestepsLieEvenly) {
  const auto source = open_noised(mixture_config(), 10);
  Batch batch;
  source->fill_evaluation(0, batch);
  for (std::size_t row = 0; row < 10; ++row) {
    EXPECT_GE(batch.numbers("timestep")[row], 100 * static_cast<float>(row));
    EXPECT_LT(batch.numbers("timestep")[row], 100 * static_cast<float>(row + 1));
  }
}

// One centre: the posterior of a normal sample under normal noise, in closed form.
TEST(GaussianMixture, OneCentreIsWhatTextbooksSay) {
  const GaussianMixture one{.dimensions = 2, .means = {0.5, -1}, .classes = {0}, .deviation = 0.4};
  const double alpha = 0.8, sigma = 0.6, spread = alpha * alpha * 0.16 + sigma * sigma;
  const std::vector<double> noised = {1.1, 0.2};
  const auto found = one.posterior(noised, alpha, sigma);
  EXPECT_NEAR(found.mean[0], 0.5 + alpha * 0.16 / spread * (1.1 - alpha * 0.5), 1e-12);
  EXPECT_NEAR(found.mean[1], -1 + alpha * 0.16 / spread * (0.2 + alpha), 1e-12);
  EXPECT_NEAR(found.variance, 0.16 * sigma * sigma / spread, 1e-12);
}

// The stated optimum is the squared error of the posterior mean, drawn anew.
TEST(GaussianMixture, TheOptimumIsTheErrorOfThePosteriorMean) {
  for (const Predicted prediction : {Predicted::epsilon, Predicted::x0, Predicted::v}) {
    for (const bool conditional : {false, true}) {
      const DataConfig config = mixture_config(prediction, conditional);
      const auto source = open_noised(config, 4096);
      const NoiseSchedule schedule(config.diffusion);
      const GaussianMixture& mixture = *source->mixture();
      double sum = 0, squares = 0, count = 0;
      Batch batch;
      for (std::uint64_t index = 0; index < 8; ++index) {
        source->fill(index, 3, batch);
        for (std::size_t row = 0; row < 4096; ++row) {
          const auto t = static_cast<std::int64_t>(batch.numbers("timestep")[row]);
          const double alpha = schedule.alpha(t), sigma = schedule.sigma(t);
          const std::vector<double> x = {batch.numbers("noised")[2 * row], batch.numbers("noised")[2 * row + 1]};
          std::optional<std::int32_t> given;
          if (conditional && batch.ids("class")[row] < 8) given = batch.ids("class")[row];
          const auto best = mixture.posterior(x, alpha, sigma, given);
          double loss = 0;
          for (std::size_t i = 0; i < 2; ++i) {
            const double noise = (x[i] - alpha * best.mean[i]) / sigma;
            const double answer = answer_for(prediction, best.mean[i], noise, alpha, sigma);
            loss += std::pow(answer - batch.numbers("answer")[2 * row + i], 2) / 2;
          }
          sum += loss, squares += loss * loss, ++count;
        }
      }
      const double mean = sum / count, error = std::sqrt((squares / count - mean * mean) / count);
      EXPECT_NEAR(mean, *source->optimum(), 5 * error) << name_of(prediction) << conditional;
      EXPECT_GT(*source->optimum(), 0.01);
    }
  }
}

TEST(Mixture, CoordinatesHaveVarianceOne) {
  DataConfig config{.task = "mixture"};
  const auto source = open_source(config, {.batch = 20000, .time = 1});
  Batch batch;
  source->fill(0, 1, batch);
  double square = 0;
  for (const float x : batch.numbers("image")) square += static_cast<double>(x) * x / 40000;
  EXPECT_NEAR(square, 1, 0.02);
  config.settings["centres"] = 65;
  EXPECT_EQ(error_of([&] { open_source(config, {.batch = 2, .time = 1}); }),
            "data.settings.centres is 65; expected 2 to 64");
}

// Shapes in noise are a mixture as well: its posterior is that of the classes.
TEST(Shapes, BehindNoiseHaveAKnownOptimum) {
  DataConfig config{.task = "shapes"};
  config.settings = {{"size", 6}, {"classes", 3}, {"contrast", 6}};
  const auto source = open_noised(config, 4);
  ASSERT_TRUE(source->optimum());
  EXPECT_GT(*source->optimum(), 0.05);
  EXPECT_LT(*source->optimum(), 1);
  EXPECT_NE(source->describe().find("least squared error"), std::string::npos);
}

}  // namespace
}  // namespace norma
