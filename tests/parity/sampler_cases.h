// Noise schedules and samplers of denoisers, as the cases of dit.py name them.
#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "device/cpu/cpu_session.h"
#include "norma/train/denoise.h"

namespace norma::test {

inline DiffusionConfig diffusion_of(const nlohmann::json& a) {
  DiffusionConfig config{.schedule = parse_noise_shape(a.at("schedule").get<std::string>()),
                         .timesteps = a.at("timesteps")};
  if (a.contains("prediction")) config.prediction = parse_prediction(a.at("prediction").get<std::string>());
  return config;
}

inline std::vector<double> kept_shares(const nlohmann::json& a) {
  const NoiseSchedule schedule(diffusion_of(a));
  std::vector<double> kept;
  for (std::int64_t t = 0; t < schedule.steps(); ++t) kept.push_back(schedule.kept(t));
  return kept;
}

// The whole way from the case's noise, with the session of a denoiser whose weights are written. `classes` is one more
// than the last class that there is.
inline std::vector<double> sampled(const nlohmann::json& a, CpuSession& session, const std::vector<double>& noise,
                                   const std::vector<std::int32_t>& labels, std::int32_t classes) {
  const DenoiseOptions options{
      .steps = a.at("steps"), .eta = a.at("eta"), .guidance = a.at("guidance"), .clip = a.at("clip")};
  const std::size_t numbers = noise.size() / static_cast<std::size_t>(options.steps + 1);
  return denoise(diffusion_of(a), options,
                 {.model =
                      [&](std::span<const double> x, std::int64_t t, DenoiseAnswers::Told told) {
                        session.write<double>("noised", x);
                        session.write<double>("timestep", std::vector<double>(labels.size(), static_cast<double>(t)));
                        const std::vector<std::int32_t> hidden(labels.size(), classes);
                        session.write<std::int32_t>("class", told == DenoiseAnswers::Told::classes ? labels : hidden);
                        session.run();
                        const std::span<const double> answer = session.tensor<double>("logits");
                        return std::vector<double>(answer.begin(), answer.end());
                      },
                  .noise =
                      [&](std::int64_t number) {
                        const auto from = noise.begin() + number * static_cast<std::int64_t>(numbers);
                        return std::vector<double>(from, from + static_cast<std::int64_t>(numbers));
                      }});
}

}  // namespace norma::test
