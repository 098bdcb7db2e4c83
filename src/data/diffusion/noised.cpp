#include "data/diffusion/noised.h"

#include <algorithm>

#include "data/draws.h"
#include "data/settings.h"
#include "norma/core/error.h"

namespace norma {
namespace {

// Rows of a held-out batch that have a target; those behind them show no data.
std::int64_t whole_rows(const Batch& batch) {
  const Batch::Ids& targets = batch.ids("targets");
  return std::ranges::find(targets, kIgnored) - targets.begin();
}

}  // namespace

Noised::Noised(std::unique_ptr<Source> clean, const DiffusionConfig& config, const BatchShape& shape)
    : clean_(std::move(clean)),
      config_(config),
      schedule_(config),
      shape_(shape),
      classes_(config.conditional ? clean_->classes() : 0),
      evaluation_batches_(clean_->evaluation_batches()) {
  // A last batch that the data do not fill is left out, unless it is the only one.
  if (evaluation_batches_ < 2) return;
  Batch last;
  clean_->fill_evaluation(evaluation_batches_ - 1, last);
  if (whole_rows(last) < shape.batch) --evaluation_batches_;
}

std::map<std::string, std::int64_t> Noised::sizes() const {
  std::map<std::string, std::int64_t> all = clean_->sizes();
  if (classes_ == 0) all.erase("classes");
  return all;
}

void Noised::add_noise(Part part, const Batch& clean, std::uint64_t index, std::uint64_t seed, Batch& batch) const {
  const Shape& shape = clean.tensor("image").shape;
  const Batch::Numbers& images = clean.numbers("image");
  const Batch::Ids& targets = clean.ids("targets");
  Batch::Numbers& noised = batch.numbers("noised", shape);
  Batch::Numbers& timestep = batch.numbers("timestep", {shape_.batch});
  Batch::Numbers& answer = batch.numbers("answer", shape);
  Batch::Ids* const classes = classes_ > 0 ? &batch.ids("class", {shape_.batch}) : nullptr;
  const std::int64_t elements = shape.elements() / shape[0];
  const std::int64_t there = std::max<std::int64_t>(1, whole_rows(clean));
  const std::uint64_t stream = hash_name(part == Part::training ? "data.noise" : "data.noise.evaluation");
  for (std::int64_t row = 0; row < shape_.batch; ++row) {
    Draws draws(seed, stream, index, static_cast<std::uint32_t>(row));
    const double unit = draws.unit();
    const double place =
        part == Part::training ? unit : (static_cast<double>(row) + unit) / static_cast<double>(shape_.batch);
    const auto t =
        std::min(schedule_.steps() - 1, static_cast<std::int64_t>(place * static_cast<double>(schedule_.steps())));
    const double alpha = schedule_.alpha(t), sigma = schedule_.sigma(t);
    const auto at = static_cast<std::size_t>(row);
    const std::int64_t from = row % there;
    timestep[at] = static_cast<float>(t);
    const bool hidden = draws.unit() < config_.drop;
    if (classes != nullptr)
      (*classes)[at] = hidden ? static_cast<std::int32_t>(classes_) : targets[static_cast<std::size_t>(from)];
    for (std::int64_t i = 0; i < elements; ++i) {
      const auto to = static_cast<std::size_t>(row * elements + i);
      const double x = images[static_cast<std::size_t>(from * elements + i)], e = normal_draw(draws);
      noised[to] = static_cast<float>(alpha * x + sigma * e);
      answer[to] = static_cast<float>(answer_for(config_.prediction, x, e, alpha, sigma));
    }
  }
}

void Noised::fill(std::uint64_t index, std::uint64_t seed, Batch& batch) const {
  thread_local Batch clean;  // no memory is taken from the second batch on
  clean_->fill(index, seed, clean);
  add_noise(Part::training, clean, index, seed, batch);
}

void Noised::fill_evaluation(std::int64_t index, Batch& batch) const {
  NORMA_ASSERT(index >= 0 && index < evaluation_batches_);
  thread_local Batch clean;
  clean_->fill_evaluation(index, clean);
  add_noise(Part::held_out, clean, static_cast<std::uint64_t>(index), 0, batch);
}

std::optional<double> Noised::optimum() const {
  if (clean_->mixture() == nullptr) return std::nullopt;
  std::call_once(known_, [this] { least_ = least_denoising_loss(*clean_->mixture(), config_, clean_->classes() > 0); });
  return least_.value;
}

std::string Noised::describe() const {
  std::string text =
      fmt::format("{}; {} noise of {} steps, {} is predicted{}", clean_->describe(), name_of(config_.schedule),
                  config_.timesteps, name_of(config_.prediction),
                  classes_ == 0 ? "" : fmt::format(", the class hidden from {:.3g} %", 100 * config_.drop));
  if (const std::optional<double> least = optimum())
    text += fmt::format("; least squared error {:.4f} +- {:.4f}", *least, least_.error);
  return text;
}

}  // namespace norma
