// One forward pass, sublayer by sublayer: how the stream grows, what each branch adds to it, how far each layer turns
// it, whether a few channels tower over the rest, and what attention looks at.
#pragma once

#include <string>
#include <vector>

#include "norma/lab/subject.h"

namespace norma {

// By site, then by member; a site is a sublayer ("layers.3.attn").
using SiteValues = std::vector<std::vector<double>>;

struct Activations {
  std::vector<std::string> sites;
  SiteValues stream_rms;    // of the stream after the sublayer
  SiteValues branch_share;  // rms of b f(..) over rms of a x, where the formula has a x + b f(..); where it has no such
                            // sum, of what the branch returned over the stream before
  SiteValues angle;         // arccos(cos(before, after)) / pi, mean over tokens
  SiteValues massive;       // largest over median magnitude of the stream after, in the first sequence
  SiteValues kurtosis;      // of the same

  std::vector<std::string> layers;  // "layers.3"
  SiteValues influence;             // 1 - mean cos(stream before, stream after) of the whole layer (Men et al. 2024)

  std::vector<std::string> attention;  // sites with attention
  SiteValues entropy;                  // nats, mean over a few queries of all heads
  SiteValues logit_max;                // largest scaled score
};

Activations measure_activations(const Subject& subject);

}  // namespace norma
