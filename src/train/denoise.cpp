#include "norma/train/denoise.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "norma/backends/device.h"
#include "norma/core/error.h"
#include "norma/core/random.h"
#include "norma/train/feeder.h"

namespace norma {
namespace {

// What a model answers for a batch of noised samples that share a timestep.
class Denoiser {
 public:
  explicit Denoiser(const TrainedModel& model, std::int64_t rows) : config_(model.config.model) {
    config_.batch = rows;
    config_.dropout = config_.smoothing = false;
    Graph graph;
    const Model built = build_model(graph, config_, {.logits = true, .purpose = Purpose::evaluate});
    graph.output("logits", built.logits);
    session_ = make_session(compile(graph, device_backend(model.config)),
                            {.members = 1, .threads = static_cast<int>(model.config.train.threads)});
    load_model(model, built.schedules, *session_);
    noised_ = session_->handle("noised");
    timestep_ = session_->handle("timestep");
    class_ = session_->find("class");
    answer_ = session_->handle("logits");
  }

  std::int64_t rows() const { return config_.batch; }

  std::vector<double> answer(std::span<const double> noised, std::int64_t t, std::span<const std::int32_t> classes) {
    session_->stage_numbers(noised_, 0, noised);
    session_->stage_numbers(timestep_, 0,
                            std::vector<double>(static_cast<std::size_t>(rows()), static_cast<double>(t)));
    if (class_) session_->write<std::int32_t>(class_, classes, 0);
    session_->run();
    return session_->numbers(answer_, 0);
  }

 private:
  ModelConfig config_;
  std::unique_ptr<Session> session_;
  Handle noised_, timestep_, class_, answer_;
};

void check_options(const TrainedModel& model, const DenoiseOptions& o) {
  const ModelConfig& m = model.config.model;
  const DiffusionConfig& d = model.config.data.diffusion;
  if (m.family->data != "noised") {
    std::vector<std::string_view> denoisers;
    for (const FamilyRow& family : families()) {
      if (family.data == "noised") denoisers.push_back(family.name);
    }
    fail("model.family is {}, which {}: it takes no noise away and cannot be sampled from noise; expected one of {}",
         m.family->name, m.family->habit, fmt::join(denoisers, ", "));
  }
  if (o.count < 1) fail("{} samples were asked for; expected at least 1", o.count);
  if (o.steps < 1 || o.steps > d.timesteps)
    fail("{} steps were asked for; expected 1 to the {} timesteps that the model was trained with", o.steps,
         d.timesteps);
  if (!(o.eta >= 0 && o.eta <= 1)) fail("eta is {}; expected 0 (no noise is added) to 1 (DDPM)", o.eta);
  if (!(o.guidance >= 0 && o.guidance <= 1000)) fail("guidance is {}; expected 0 to 1000", o.guidance);
  if (!(o.clip >= 0)) fail("clip is {}; expected a bound above 0, or 0 for none", o.clip);
  if (o.guidance != 1 && m.classes == 0)
    fail("guidance of {} needs a model that was told classes, and this one was not", o.guidance);
  if (o.guidance != 1 && d.drop == 0)
    fail("guidance of {} needs a model that was trained with some classes hidden; diffusion.drop was 0", o.guidance);
  if (o.label && m.classes == 0) fail("class {} was asked for, but the model was not told classes", *o.label);
  if (o.label && (*o.label < 0 || *o.label >= m.classes))
    fail("class {} was asked for; the model knows 0 to {}", *o.label, m.classes - 1);
}

// Samples `first` to `first + rows` of a run of steps, all at once.
class Trajectory {
 public:
  Trajectory(Denoiser& denoiser, const ModelConfig& model, const DiffusionConfig& diffusion, const DenoiseOptions& o,
             std::int64_t first)
      : denoiser_(denoiser), diffusion_(diffusion), options_(o), first_(first) {
    elements_ = model.family->output(model).shape.elements() / model.batch;
    for (std::int64_t row = 0; row < denoiser.rows(); ++row) {
      classes_.push_back(o.label ? *o.label
                                 : static_cast<std::int32_t>(model.classes > 0 ? (first + row) % model.classes : 0));
      hidden_.push_back(static_cast<std::int32_t>(model.classes));
    }
  }

  void run(const std::function<void(std::int64_t)>& stepped) {
    using Told = DenoiseAnswers::Told;
    x_ =
        denoise(diffusion_, options_,
                {.model = [&](std::span<const double> x, std::int64_t t,
                              Told told) { return denoiser_.answer(x, t, told == Told::classes ? classes_ : hidden_); },
                 .noise = [&](std::int64_t number) { return draw(number); }},
                stepped);
  }

  void take(std::int64_t count, DenoisedSamples& samples) const {
    samples.values.insert(samples.values.end(), x_.begin(), x_.begin() + count * elements_);
    if (hidden_.front() > 0) samples.classes.insert(samples.classes.end(), classes_.begin(), classes_.begin() + count);
  }

 private:
  std::vector<double> draw(std::int64_t number) const {
    std::vector<double> drawn(static_cast<std::size_t>(denoiser_.rows() * elements_));
    for (std::int64_t row = 0; row < denoiser_.rows(); ++row) {
      const std::uint64_t name = hash_name("sample." + std::to_string(first_ + row));
      const RandomStream stream(options_.seed, name, static_cast<std::uint64_t>(number));
      stream.each_normal(static_cast<std::uint64_t>(elements_), [&](std::uint64_t i, double normal) {
        drawn[static_cast<std::size_t>(row * elements_) + i] = normal;
      });
    }
    return drawn;
  }

  Denoiser& denoiser_;
  const DiffusionConfig& diffusion_;
  const DenoiseOptions& options_;
  std::int64_t first_, elements_;
  std::vector<std::int32_t> classes_, hidden_;
  std::vector<double> x_;
};

void check_finite(const DenoisedSamples& samples, const DenoiseOptions& o) {
  std::int64_t lost = 0;
  for (auto at = samples.values.begin(); at != samples.values.end(); at += samples.elements())
    lost += std::all_of(at, at + samples.elements(), [](float x) { return std::isfinite(x); }) ? 0 : 1;
  if (lost == 0) return;
  fail("{} of {} samples are not finite{}: the model's weights or its answers are too large", lost, samples.count(),
       o.guidance > 1 ? fmt::format(" with guidance of {}", o.guidance) : "");
}

// unconditional + w (conditional - unconditional), of which only what counts is asked for.
std::vector<double> guided_answer(const DenoiseAnswers& answers, std::span<const double> x, std::int64_t t, double w) {
  using Told = DenoiseAnswers::Told;
  if (w == 1) return answers.model(x, t, Told::classes);
  std::vector<double> answer = answers.model(x, t, Told::nothing);
  if (w == 0) return answer;
  const std::vector<double> conditional = answers.model(x, t, Told::classes);
  for (std::size_t i = 0; i < answer.size(); ++i) answer[i] += w * (conditional[i] - answer[i]);
  return answer;
}

}  // namespace

DenoiseStep::DenoiseStep(double kept_from, double kept_to, double eta)
    : clean(std::sqrt(kept_to)),
      noise(0),
      spread(eta * std::sqrt((1 - kept_to) / (1 - kept_from) * std::max(0.0, 1 - kept_from / kept_to))) {
  noise = std::sqrt(std::max(0.0, 1 - kept_to - spread * spread));
}

std::vector<std::int64_t> denoising_timesteps(std::int64_t timesteps, std::int64_t steps) {
  std::vector<std::int64_t> chosen;
  for (std::int64_t i = steps; i >= 1; --i) chosen.push_back(i * timesteps / steps - 1);
  return chosen;
}

std::vector<double> denoise(const DiffusionConfig& diffusion, const DenoiseOptions& options,
                            const DenoiseAnswers& answers, const std::function<void(std::int64_t)>& stepped) {
  const NoiseSchedule schedule(diffusion);
  const std::vector<std::int64_t> chosen = denoising_timesteps(diffusion.timesteps, options.steps);
  std::vector<double> x = answers.noise(0);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const std::int64_t t = chosen[i];
    const double alpha = schedule.alpha(t), sigma = schedule.sigma(t);
    const DenoiseStep step(schedule.kept(t), i + 1 < chosen.size() ? schedule.kept(chosen[i + 1]) : 1, options.eta);
    const std::vector<double> answer = guided_answer(answers, x, t, options.guidance);
    const std::vector<double> noise =
        step.spread > 0 ? answers.noise(static_cast<std::int64_t>(i) + 1) : std::vector<double>();
    for (std::size_t at = 0; at < x.size(); ++at) {
      Denoised found = denoised(diffusion.prediction, answer[at], x[at], alpha, sigma);
      if (options.clip > 0 && std::abs(found.clean) > options.clip) {
        found.clean = std::clamp(found.clean, -options.clip, options.clip);
        found.noise = (x[at] - alpha * found.clean) / sigma;
      }
      x[at] = step.clean * found.clean + step.noise * found.noise;
      if (step.spread > 0) x[at] += step.spread * noise[at];
    }
    if (stepped) stepped(static_cast<std::int64_t>(i) + 1);
  }
  return x;
}

DenoisedSamples sample_denoiser(const TrainedModel& model, const DenoiseOptions& options,
                                const std::function<void(std::int64_t, std::int64_t)>& stepped) {
  check_options(model, options);
  const ModelConfig& config = model.config.model;
  const Shape shape = config.family->output(config).shape;
  DenoisedSamples samples{.height = shape[1], .width = shape[2], .channels = shape[3]};
  Denoiser denoiser(model, std::min(options.count, config.batch));
  const std::int64_t parts = (options.count + denoiser.rows() - 1) / denoiser.rows();
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t first = part * denoiser.rows();
    Trajectory trajectory(denoiser, config, model.config.data.diffusion, options, first);
    trajectory.run([&](std::int64_t done) {
      if (stepped) stepped(part * options.steps + done, parts * options.steps);
    });
    trajectory.take(std::min(denoiser.rows(), options.count - first), samples);
  }
  check_finite(samples, options);
  return samples;
}

}  // namespace norma
