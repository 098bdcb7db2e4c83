#include "norma/core/names.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace norma {
namespace {

// Levenshtein distance, one row at a time.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({substitute, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

constexpr std::size_t kLongestComparedName = 256;  // bounds the work on hostile input

}  // namespace

std::string nearest_name(std::string_view name, std::span<const std::string> candidates) {
  // Any other letter is as near to a single one.
  if (name.size() < 2 || name.size() > kLongestComparedName) return "";
  std::string best;
  std::size_t best_distance = 1 + std::max<std::size_t>(1, name.size() / 2);
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongestComparedName) continue;
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view name, std::span<const std::string> candidates) {
  const std::string nearest = nearest_name(name, candidates);
  return nearest.empty() ? "" : " (did you mean '" + nearest + "'?)";
}

}  // namespace norma
