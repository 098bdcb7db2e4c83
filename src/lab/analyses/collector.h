// Gathers readings of many models and turns them into analyses: estimates over seeds, profiles, exponents.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "norma/lab/inspect.h"

namespace norma {

// The law of a profile [site][member] along the sites of the stack that ends in the head, from the fourth on: the first
// sites still remember the embedding. Empty for short profiles and where a value is not positive.
std::optional<Exponent> law_along(const std::vector<std::string>& sites, std::span<const std::vector<double>> profile);

class Collector {
 public:
  explicit Collector(const std::vector<Instrument>& used);

  // Models of a scheme come in the order of their depths.
  void add(const std::string& scheme, const ModelConfig& model, std::vector<Reading> readings);
  std::vector<Analysis> finish(const std::vector<std::string>& schemes) const;

 private:
  // Of one scheme, by one analysis.
  struct Collected {
    std::vector<double> x;
    std::vector<std::int64_t> depths;
    std::vector<Reading> readings;
  };

  static std::optional<Exponent> exponent_of(ExponentOver over, const Collected& collected);
  static Series series_of(const std::string& scheme, const AnalysisInfo& info, const Collected& collected);

  std::vector<AnalysisInfo> infos_;
  std::map<std::pair<std::string, std::string>, Collected> found_;  // by analysis and scheme
};

}  // namespace norma
