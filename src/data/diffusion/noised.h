// Samples behind noise, for models that take it away. Of another source's "image" [batch, height, width, channels] and
// "targets" [batch] it makes, for every row, a timestep t and noise e of its own:
//   noised    numbers [batch, height, width, channels]: alpha(t) image + sigma(t) e
//   timestep  numbers [batch]: t, from 0
//   class     ids [batch]: that of the image, or one more than the last where it is hidden; not of data without classes
//   answer    numbers, as noised: what the model is asked for
// All of it is a function of seed, batch and row, so that a run resumes exactly, and held-out batches never change.
// Their timesteps lie evenly over the schedule.
#pragma once

#include <memory>
#include <mutex>

#include "norma/data/diffusion.h"
#include "norma/data/gaussian_mixture.h"
#include "norma/data/source.h"

namespace norma {

class Noised final : public Source {
 public:
  Noised(std::unique_ptr<Source> clean, const DiffusionConfig& config, const BatchShape& shape);

  void fill(std::uint64_t index, std::uint64_t seed, Batch& batch) const override;
  std::int64_t evaluation_batches() const override { return evaluation_batches_; }
  void fill_evaluation(std::int64_t index, Batch& batch) const override;
  std::int64_t vocabulary() const override { return 0; }
  std::map<std::string, std::int64_t> sizes() const override;
  std::int64_t held_out_records() const override { return clean_->held_out_records(); }
  std::optional<double> optimum() const override;
  std::string describe() const override;
  const GaussianMixture* mixture() const override { return clean_->mixture(); }
  const Source* clean() const override { return clean_.get(); }

 private:
  enum class Part { training, held_out };
  void add_noise(Part part, const Batch& clean, std::uint64_t index, std::uint64_t seed, Batch& batch) const;

  std::unique_ptr<Source> clean_;
  DiffusionConfig config_;
  NoiseSchedule schedule_;
  BatchShape shape_;
  std::int64_t classes_, evaluation_batches_;
  mutable std::once_flag known_;
  mutable Estimated least_;
};

}  // namespace norma
