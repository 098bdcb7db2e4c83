// What is already known after each layer: the logit lens, and linear probes.
#pragma once

#include <vector>

#include "norma/lab/subject.h"

namespace norma {

// The model cut off after each layer, with the scheme's own final formula and head behind it: what a final norm expects
// it gets, and a scheme without one is read as it is.
struct LogitLens {
  // By number of layers (0 to all) and member.
  std::vector<std::vector<double>> loss;
  std::vector<std::vector<double>> divergence;  // KL(whole model || cut model), nats per token
  std::vector<std::vector<double>> agreement;   // share of tokens with the same most likely one
};
LogitLens measure_lens(const Subject& subject);

// Ridge regression from the normalised stream at each border of layers to the target, fitted on training batches:
// share of held-out targets that it finds, by border (0: the embedding) and member.
struct Probes {
  std::vector<std::vector<double>> share;
  double targets = 0;  // that judged each
};
struct ProbeOptions {
  int batches = 8;      // to fit on
  double ridge = 1e-2;  // times the mean of the squared features
};
Probes measure_probes(const Subject& subject, const ProbeOptions& options = {});

}  // namespace norma
