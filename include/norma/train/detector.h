// Divergence is a result: watches the losses of one member and says when and why it went astray.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "norma/train/config.h"

namespace norma {

enum class Astray {
  not_finite,           // the loss is NaN or infinite
  gradient_not_finite,  // the norm of all gradients is
  risen,                // the rolling median is above the first loss, by more than noise
  spiked,               // the loss stayed above the rolling median for too long
};

std::string_view name_of(Astray why);

// Whether the training step refuses to change the weights then.
constexpr bool keeps_weights(Astray why) { return why == Astray::not_finite || why == Astray::gradient_not_finite; }

// Remembers what it needs and nothing else; its state goes into checkpoints.
class Detector {
 public:
  explicit Detector(const DetectConfig& config) : config_(config) {}

  // The loss of the next step and the norm of its gradients. A value: the member is astray from this step on.
  std::optional<Astray> watch(double loss, double gradient_norm = 0);

  // A spike lasts, or the median has risen above the first loss: not astray yet.
  bool in_doubt() const;

  // Forgets the spike and the window, as after a roll-back.
  void restart();

  std::int64_t spikes() const { return spikes_; }
  double median() const;  // of the window; NaN while it is empty

  // What the first window has shown.
  struct Start {
    double median = 0, noise = 0;  // noise: deviation of single losses
  };

  // For exact resume.
  struct State {
    std::vector<double> window;
    double first_loss = 0;
    std::optional<Start> start = {};  // none: no window was full yet, or the checkpoint is older than this
    std::int64_t watched = 0, spikes = 0, spike_steps = 0;
  };
  const State state() const { return {window_, first_loss_, start_, watched_, spikes_, spike_steps_}; }
  void restore(const State& state);

 private:
  bool full() const { return static_cast<std::int64_t>(window_.size()) >= config_.window; }
  bool risen() const;
  double noise() const;  // of the window

  DetectConfig config_;
  std::vector<double> window_;  // of calm losses, oldest first
  double first_loss_ = 0;
  std::optional<Start> start_ = {};
  std::int64_t watched_ = 0;
  std::int64_t spikes_ = 0;
  std::int64_t spike_steps_ = 0;  // how long the present one lasts
};

}  // namespace norma
