// Copy and sort: a row is n random symbols, a mark, and the same symbols again, as they were or in order, n = time / 2.
// Only the second half is counted; it follows from the first, so the optimum is 0. Tokens: symbols, then the mark.
#pragma once

#include "data/generated.h"

namespace norma {

class Transduction : public GeneratedSource {
 public:
  static constexpr std::int64_t kMostSymbols = std::int64_t{1} << 20, kUsualSymbols = 16;

  std::int64_t vocabulary() const override { return symbols_ + 1; }
  std::optional<double> optimum() const override { return 0.0; }
  std::string describe() const override;

 protected:
  enum class Answer { same, sorted };

  Transduction(const char* name, Answer answer, const DataConfig& config, const BatchShape& shape);
  void write_row(Draws& draws, std::int32_t* tokens, std::int32_t* targets) const override;

 private:
  const char* name_;
  Answer answer_;
  std::int64_t symbols_;
};

class Copy final : public Transduction {
 public:
  Copy(const DataConfig& config, const BatchShape& shape) : Transduction("copy", Answer::same, config, shape) {}
};

class Sort final : public Transduction {
 public:
  Sort(const DataConfig& config, const BatchShape& shape) : Transduction("sort", Answer::sorted, config, shape) {}
};

}  // namespace norma
