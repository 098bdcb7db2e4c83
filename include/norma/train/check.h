// Logits, loss and every gradient of a model for given weights and tokens, so that anyone can compare norma with code
// of their own. docs/check.md names the tensors and their layouts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "norma/train/config.h"

namespace norma {

struct CheckRequest {
  RunConfig config;                              // the model; batch and lengths come from the tokens
  std::optional<std::filesystem::path> weights;  // safetensors by parameter name; none: the initial ones of train.seed
  std::optional<std::filesystem::path>
      tokens;                 // safetensors with tokens, targets, ...; none: the first batch of the data
  std::filesystem::path out;  // safetensors: loss, logits, gradient.<parameter>, and weights, tokens
};

struct CheckResult {
  double loss = 0;
  std::int64_t parameters = 0;
  std::vector<std::string> tensors;  // written
};

// Throws Error naming tensor, what was given and what was expected; nothing is written then.
CheckResult check_model(const CheckRequest& request);

}  // namespace norma
