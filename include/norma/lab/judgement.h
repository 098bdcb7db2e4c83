// What the theory makes of a scheme, in one plain sentence.
#pragma once

#include <cstdint>
#include <string>

#include "norma/models/model.h"

namespace norma {

// How amplification grows with depth, where that lies between Pre-LN and Post-LN of the same model, and from which
// depth on warmup is to be expected: the depth at which it is as large as in a Post-LN of kWarmupLayers, which needs it
// (Liu et al. 2020); of layers without attention nothing is said of warmup. Of the model's family, width, heads, time
// and norm; its depth does not count. Where no rule covers the scheme, a sentence that says so.
inline constexpr std::int64_t kWarmupLayers = 12;
std::string judge_by_theory(const ModelConfig& model);

}  // namespace norma
