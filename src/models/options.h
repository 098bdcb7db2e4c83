// Options of one branch: those of the scheme's file, replaced by those given inside the call.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "norma/models/branches.h"
#include "norma/schemes/branch_kinds.h"
#include "norma/schemes/evaluate.h"
#include "norma/schemes/scheme.h"
#include "norma/schemes/trace.h"

namespace norma {

class BranchChoice {
 public:
  // Throws BranchOptionError for an unknown option.
  BranchChoice(const Scheme& scheme, const BranchKind& kind, const BranchOptions& given, const Variables& numbers);

  std::string text(const std::string& option) const;  // "" when not given
  std::optional<double> number(const std::string& option) const;
  std::optional<StoredGain> gain(const std::string& option, const std::string& stored) const;

  // `qk_norm` is the model's own wish, for schemes without one; `carried` the scores of the layer below.
  AttentionExtras attention(const std::string& qk_norm, Wire& carried) const;

 private:
  const std::string& scheme_;
  std::string branch_;
  BranchOptions options_;
  const Variables& numbers_;
};

}  // namespace norma
