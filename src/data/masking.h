// Masked language modelling (Devlin et al. 2019): in each row a fixed number of tokens, data.mask_fraction of them, are
// to be predicted; 80 % of these are replaced by <mask>, 10 % by a random token, 10 % stay. <mask> is the token behind
// those of the language.
#pragma once

#include <string>

#include "data/draws.h"
#include "norma/data/source.h"

namespace norma {

class Masking {
 public:
  // Throws Error when config.mask_fraction is no share.
  Masking(const DataConfig& config, std::int64_t time, std::int64_t words);

  // `tokens` is a row of the language; what is asked becomes `targets`.
  void ask(Draws draws, std::int32_t* tokens, std::int32_t* targets) const;

  std::int64_t vocabulary() const { return words_ + 1; }
  std::int32_t mask() const { return static_cast<std::int32_t>(words_); }
  std::string describe() const;
  // With "<mask>" where the language has no word.
  std::string decode(std::span<const std::int32_t> tokens, const Source& language, std::string_view between) const;

 private:
  std::int64_t time_, words_, asked_;  // asked: tokens of each row
};

}  // namespace norma
