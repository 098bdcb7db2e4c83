// What the records of a member say about its health, as numbers. Nothing is judged here.
#pragma once

#include <string>
#include <vector>

#include "lab/limits.h"
#include "norma/lab/run_history.h"

namespace norma {

// A number, and where and when it was recorded.
struct SignReading {
  double value = kNaN;
  std::int64_t step = 0;
  std::string site = {};

  bool there() const { return step > 0; }
};

struct Signs {
  // Losses.
  std::int64_t last_step = 0;
  double first_loss = kNaN;
  double last_loss = kNaN;  // of training, the median of the last few records
  double slope = 0;         // of the training loss over the last half of the records, by step
  double slope_t = 0;       // over its standard error
  bool falling = false;
  bool trend_is_known() const { return slope_t != 0; }  // of few records only the first and the last are compared
  // Rms of an update over the rms that the layer's weights began with.
  SignReading largest_update;
  double weights_rms = kNaN;     // of the weights of layers, at the start
  double moved = kNaN;           // all updates together over it: as far as the weights can have come
  double first_gradient = kNaN;  // rms over the layers at the first record
  // The smallest gradient of a layer over the largest one: how much of it arrives everywhere.
  SignReading reach_at_start, reach_late;
  std::int64_t reach_lost = 0;                   // the first step from which it stayed below kReachLost
  SignReading gradient_at_start, gradient_most;  // of all weights together
  SignReading layer_gradient_most;               // rms of that of a layer
  // Attention.
  SignReading logit_at_start, logit_most;
  double saturated_at_start = 0, saturated_late = 0;  // shares of the attention layers
  // The stream.
  SignReading stream_at_start, stream_most;
  // The first value of a probe that is not finite; `site` with the kind before it.
  SignReading bad_probe;
  bool probed = false;
};

inline constexpr double kReachLost = 1e-2;
inline constexpr double kSaturatedLogit = 100;     // an attention logit this large ...
inline constexpr double kSaturatedEntropy = 0.05;  // ... with so little of the largest entropy left looks at one token

Signs read_signs(const RunHistory& run, const MemberHistory& member);

}  // namespace norma
