// How much a small change of the weights moves the output: amplification (Liu et al. 2020) and the first optimiser step
// (Wang et al. 2022). Outputs are compared after a weightless layer norm, so that a scheme without a final norm is not
// charged for the size of its stream.
#pragma once

#include <string>
#include <vector>

#include "norma/lab/subject.h"

namespace norma {

struct Amplification {
  std::vector<double> output;      // by member: squared change of the normalised output per token, summed over channels
  std::vector<std::string> sites;  // sublayers
  std::vector<std::vector<double>> profile;  // by site and member: the same for the stream after the sublayer
};

// Adds -size * sign(normal) to every weight matrix of the layers (not biases, norms, learned scalars, embeddings,
// head). The change is absolute, as Adam's steps are.
Amplification measure_amplification(const Subject& subject, double size = 1e-4);

// By member: rms change of the normalised output after one step of SGD (theta -= sgd_lr * gradient) and after Adam's
// first step (theta -= sign_lr * sign(gradient)), of the layers' weight matrices alone, as theories of updates count
// them, and of all parameters. The scheme's own factors on the learning rate apply.
struct FirstStep {
  std::vector<double> sgd, sign;
  std::vector<double> sgd_all, sign_all;
};

FirstStep measure_first_step(const Subject& subject, double sgd_lr = 1e-3, double sign_lr = 1e-4);

}  // namespace norma
