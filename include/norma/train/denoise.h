// Samples of a trained denoiser, from noise step by step: DDIM (Song, Meng, Ermon 2021, arXiv 2010.02502), of which
// DDPM's steps are the case eta = 1, and classifier-free guidance (Ho, Salimans 2022, arXiv 2207.12598).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "norma/data/diffusion.h"
#include "norma/train/generate.h"

namespace norma {

struct DenoiseOptions {
  std::int64_t steps = 50;  // of the timesteps that the model was trained with, evenly spaced
  double eta = 0;           // share of DDPM's noise that each step adds: 0 adds none, 1 is DDPM
  double guidance = 1;      // w: answers are unconditional + w (conditional - unconditional)
  std::int64_t count = 64;
  std::uint64_t seed = 1;
  std::optional<std::int32_t> label = {};  // none: classes in turn
  double clip = 0;                         // the clean sample behind a step lies within +- this; 0: it is not clipped
};

// x_s from x_t: alpha_s x0 + sqrt(sigma_s^2 - spread^2) e + spread z with z standard normal, number by number.
struct DenoiseStep {
  double clean, noise, spread;

  DenoiseStep(double kept_from, double kept_to, double eta);
};
// Timesteps from the noisiest on; steps of them, evenly spaced, the last of the schedule always among them.
std::vector<std::int64_t> denoising_timesteps(std::int64_t timesteps, std::int64_t steps);

// What a way from noise to samples asks for.
struct DenoiseAnswers {
  enum class Told { classes, nothing };
  // What a model answers for x at timestep t.
  std::function<std::vector<double>(std::span<const double> x, std::int64_t t, Told told)> model;
  // Standard normal numbers, as many as x has: 0 is where the way begins, n is what step n adds, from 1.
  std::function<std::vector<double>(std::int64_t number)> noise;
};
// The whole way: steps, eta, guidance and clip of the options. `stepped` is told after each step how many are done.
std::vector<double> denoise(const DiffusionConfig& diffusion, const DenoiseOptions& options,
                            const DenoiseAnswers& answers, const std::function<void(std::int64_t done)>& stepped = {});

struct DenoisedSamples {
  std::int64_t height = 0, width = 0, channels = 0;
  std::vector<float> values = {};          // [count, height, width, channels]
  std::vector<std::int32_t> classes = {};  // that were asked for; empty: the model knows none
  std::int64_t elements() const { return height * width * channels; }
  std::int64_t count() const { return static_cast<std::int64_t>(values.size()) / elements(); }
};

// Throws Error for a model that takes no noise away, for more steps than the model was trained with, for guidance of a
// model that was not told classes or was always told them, for a class that there is none of, and where samples are not
// finite. What is drawn depends on seed, sample and step alone. `stepped` is told after each step of all samples how
// many are done.
DenoisedSamples sample_denoiser(const TrainedModel& model, const DenoiseOptions& options,
                                const std::function<void(std::int64_t done, std::int64_t all)>& stepped = {});

}  // namespace norma
