// Every number of every scheme of the catalogue against a file, so that a faster way to them is seen to be the same.
#include <fmt/format.h>

#include <bit>
#include <sstream>

#include "places.h"
#include "schemes/golden.h"
#include "theory/branches.h"

namespace norma {
namespace {

using Flat = std::array<double, sizeof(CrossResponse) / sizeof(double)>;

// A response with nothing equal in it: moments fall with the scale, and what tokens share grows with correlations.
CrossResponse uneven(double scale, double correlation, double memory_correlation) {
  Flat numbers;
  for (std::size_t n = 0; n < numbers.size(); n += 2) {
    const double own = (0.3 + 0.5 * std::fmod(0.618 * static_cast<double>(n + 1), 1.0)) / (1 + 0.1 * scale);
    numbers[n] = own * (1 - 0.2 * correlation);
    numbers[n + 1] = own * (0.1 + 0.4 * correlation + 0.2 * memory_correlation);
  }
  return std::bit_cast<CrossResponse>(numbers);
}

constexpr int kScales = 5, kCorrelations = 4;
double share(int i) { return static_cast<double>(i) / (kCorrelations - 1); }

// `shift`: so that no two tables are alike.
BranchTable uneven_table(double shift) {
  std::vector<BranchResponse> points;
  for (int s = 0; s < kScales; ++s) {
    for (int c = 0; c < kCorrelations; ++c) points.push_back(uneven(s + shift, share(c), 0).query);
  }
  return {-2, kScales, kCorrelations, std::move(points)};
}

CrossTable uneven_cross_table(double shift, int memory_correlations) {
  std::vector<CrossResponse> points;
  for (int s = 0; s < kScales; ++s) {
    for (int c = 0; c < kCorrelations; ++c) {
      for (int m = 0; m < memory_correlations; ++m) points.push_back(uneven(s + shift, share(c), share(m)));
    }
  }
  return {-2, kScales, kCorrelations, memory_correlations, std::move(points)};
}

BranchTables uneven_branches(const Scheme& scheme) {
  BranchTables tables{.plain = {{"attention", uneven_table(0)}, {"ffn", uneven_table(0.5)}}};
  tables.apart = uneven_cross_table(1, 1);
  if (norm_on_branches(scheme).empty()) return tables;
  tables.normed["attention"] = uneven_table(2);
  tables.normed["ffn"] = uneven_table(2.5);
  return tables;
}

EncoderDecoderTables uneven_stacks(const Scheme& scheme) {
  EncoderDecoderTables tables{.encoder = uneven_branches(scheme), .decoder = uneven_branches(scheme)};
  tables.cross = uneven_cross_table(0, kCorrelations);
  if (!norm_on_branches(scheme).empty()) tables.cross_normed = uneven_cross_table(3, kCorrelations);
  return tables;
}

// Means over all places, each number with a weight of its own.
class Mean {
 public:
  void add(double value) {
    const double weight = 1 + std::fmod(0.618 * ++count_, 1.0);
    sum_ += weight * value;
    weights_ += weight;
  }
  double value() const { return weights_ == 0 ? 0 : sum_ / weights_; }

 private:
  double sum_ = 0, weights_ = 0, count_ = 0;
};

std::string line(const std::string& name, const Theory& theory) {
  Mean rms, correlation, gradient, branch, weight, profiled;
  for (const StreamTheory& stream : theory.streams) {
    rms.add(stream.rms);
    correlation.add(stream.correlation);
    gradient.add(stream.gradient_rms);
  }
  for (const BranchTheory& at : theory.branches) {
    branch.add(at.rms);
    weight.add(at.weight_gradient);
  }
  for (const ProfiledTheory& at : theory.profiled) profiled.add(at.value);
  return fmt::format("{} {:.12g} {:.12g} {:.12g} {:.12g} {:.12g} {:.12g} {:.12g} {:.12g}\n", name, theory.output_rms,
                     theory.amplification, rms.value(), correlation.value(), gradient.value(), branch.value(),
                     weight.value(), profiled.value());
}

std::string all_lines() {
  std::string lines =
      "scheme output_rms amplification stream_rms correlation stream_gradient branch_rms weight_gradient profiled\n";
  TheoryConfig config{.layers = 9, .width = 64, .heads = 4, .input = {0.7, 0.1}};
  config.encoder_layers = 5;
  config.source = {1.2, 0.2};
  for (const Scheme& scheme : catalogue()) {
    try {
      lines += line(scheme.name, propagate(scheme, uneven_branches(scheme), config));
      const EncoderDecoderTheory both = propagate(scheme, uneven_stacks(scheme), config);
      lines += line(scheme.name + ".encoder", both.encoder) + line(scheme.name + ".decoder", both.decoder);
    } catch (const NotPredictedError&) {
    }
  }
  return lines;
}

// "" where the words are equal, and numbers to nine digits.
std::string numeric_difference(const std::string& expected, const std::string& found) {
  std::istringstream before(expected), after(found);
  std::string a, b, scheme;
  while (before >> a) {
    if (!(after >> b)) return "ends after " + scheme;
    char *end_a = nullptr, *end_b = nullptr;
    const double x = std::strtod(a.c_str(), &end_a), y = std::strtod(b.c_str(), &end_b);
    if (*end_a != 0 || *end_b != 0) {
      if (a != b) return fmt::format("'{}' where '{}' is expected", b, a);
      scheme = a;
    } else if (!(std::abs(x - y) <= 1e-9 * std::max(1e-3, std::abs(x)))) {
      return fmt::format("{}: {} where {} is expected", scheme, b, a);
    }
  }
  return after >> b ? "goes on with " + b : "";
}

TEST(Theory, EveryNumberOfTheCatalogueIsKept) {
  const std::string found = all_lines();
  const std::filesystem::path path = std::filesystem::path(test::kSourceFolder) / "tests" / "golden" / "theory.txt";
  if (std::getenv("NORMA_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << found;
  std::ifstream stream(path);
  ASSERT_TRUE(stream) << path << " does not exist; NORMA_UPDATE_GOLDEN=1 writes it";
  const std::string golden(std::istreambuf_iterator<char>(stream), {});
  EXPECT_EQ(numeric_difference(golden, found), "");
  EXPECT_GT(std::count(golden.begin(), golden.end(), '\n'), 100);
}

}  // namespace
}  // namespace norma
