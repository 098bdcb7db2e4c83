#include "lab/diagnose/data_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

namespace norma {
namespace {

constexpr std::uint64_t kBatches = 128;  // half of them to count, half to judge
constexpr double kPrior = 4;             // so many observations of the shorter context weigh as much as its own

// How often each target follows a context, and what that makes of its chance.
class ContextCounts {
 public:
  void add(std::uint64_t context, std::int32_t target) {
    Counts& counts = contexts_[context];
    ++counts.total;
    ++counts.targets[target];
  }
  // Between what was counted here and `otherwise`, the chance by a shorter context.
  double chance(std::uint64_t context, std::int32_t target, double otherwise) const {
    const auto found = contexts_.find(context);
    if (found == contexts_.end()) return otherwise;
    const auto count = found->second.targets.find(target);
    // Witten and Bell: the more kinds of targets a context has, the less its counts say of the next one.
    const double prior = kPrior * static_cast<double>(found->second.targets.size());
    return ((count == found->second.targets.end() ? 0 : count->second) + prior * otherwise) /
           (found->second.total + prior);
  }

 private:
  struct Counts {
    double total = 0;
    std::unordered_map<std::int32_t, double> targets;
  };
  std::unordered_map<std::uint64_t, Counts> contexts_;
};

struct Gains {
  std::vector<double> by_batch;
  std::int64_t targets = 0;

  DataTest test(std::string words) const {
    const double n = static_cast<double>(by_batch.size());
    double mean = 0, squares = 0;
    for (const double gain : by_batch) mean += gain / n;
    for (const double gain : by_batch) squares += (gain - mean) * (gain - mean);
    return {.words = std::move(words), .gain = mean, .error = std::sqrt(squares / (n - 1) / n), .targets = targets};
  }
};

std::uint64_t key_of(std::int32_t before) { return static_cast<std::uint32_t>(before); }
std::uint64_t key_of(std::int32_t further, std::int32_t before) { return (key_of(further) + 1) << 32 | key_of(before); }

// Targets that stand beside the tokens they follow.
DataTest test_following(const Source& source, std::uint64_t seed) {
  ContextCounts frequency, one, two;
  std::set<std::int32_t> known;
  Gains gain_of_one, gain_of_two;
  double guess = 0;
  Batch batch;
  for (std::uint64_t index = 0; index < kBatches; ++index) {
    source.fill(index, seed, batch);
    const Batch::Ids &tokens = batch.ids("tokens"), &targets = batch.ids("targets");
    const bool judged = index >= kBatches / 2;
    double by_one = 0, by_two = 0, by_none = 0, counted = 0;
    for (std::size_t i = 1; i < targets.size(); ++i) {
      if (targets[i] == kIgnored) continue;
      const std::uint64_t near = key_of(tokens[i]), far = key_of(tokens[i - 1], tokens[i]);
      if (!judged) {
        known.insert(targets[i]);
        frequency.add(0, targets[i]);
        one.add(near, targets[i]);
        two.add(far, targets[i]);
        continue;
      }
      const double none = frequency.chance(0, targets[i], 1.0 / static_cast<double>(known.size() + 1));
      const double chance = one.chance(near, targets[i], none);
      by_none -= std::log(none);
      by_one -= std::log(chance);
      by_two -= std::log(two.chance(far, targets[i], chance));
      ++counted;
    }
    if (!judged || counted == 0) continue;
    guess += by_none / counted;
    gain_of_one.by_batch.push_back((by_none - by_one) / counted);
    gain_of_two.by_batch.push_back((by_none - by_two) / counted);
    gain_of_one.targets = gain_of_two.targets += static_cast<std::int64_t>(counted);
  }
  if (gain_of_one.by_batch.size() < 2) return {.words = "there are too few targets", .gain = 0, .error = kPrior};
  guess /= static_cast<double>(gain_of_one.by_batch.size());
  const DataTest near = gain_of_one.test(""), far = gain_of_two.test("");
  DataTest best = far.gain > near.gain ? far : near;
  best.words = fmt::format("counts of what follows {} lose {:.3f} nats a target, guessing by frequency {:.3f}",
                           far.gain > near.gain ? "two tokens" : "a token", guess - best.gain, guess);
  return best;
}

// Labels of whole rows: naive Bayes by the tokens that a row has, against the most frequent label.
DataTest test_labels(const Source& source, std::uint64_t seed) {
  std::map<std::int32_t, double> labels;
  std::map<std::int32_t, std::unordered_map<std::int32_t, double>> rows_with;  // label -> token -> rows
  Gains gains;
  double right_of_all = 0, guessed_of_all = 0;
  Batch batch;
  for (std::uint64_t index = 0; index < kBatches; ++index) {
    source.fill(index, seed, batch);
    const Batch::Ids &tokens = batch.ids("tokens"), &targets = batch.ids("targets");
    const std::size_t time = tokens.size() / targets.size();
    double right = 0, guessed = 0;
    for (std::size_t row = 0; row < targets.size(); ++row) {
      if (targets[row] == kIgnored) continue;
      const auto begin = tokens.begin() + static_cast<std::ptrdiff_t>(row * time);
      const std::set<std::int32_t> words(begin, begin + static_cast<std::ptrdiff_t>(time));
      if (index < kBatches / 2) {
        ++labels[targets[row]];
        for (const std::int32_t word : words) ++rows_with[targets[row]][word];
        continue;
      }
      std::int32_t most = 0, likeliest = 0;
      double count_of_most = -1, best = -INFINITY;
      for (const auto& [label, count] : labels) {
        if (count > count_of_most) most = label, count_of_most = count;
        double score = std::log(count);
        for (const std::int32_t word : words) {
          const auto found = rows_with[label].find(word);
          score += std::log(((found == rows_with[label].end() ? 0 : found->second) + 0.5) / (count + 1));
        }
        if (score > best) best = score, likeliest = label;
      }
      right += likeliest == targets[row];
      guessed += most == targets[row];
      ++gains.targets;
    }
    if (index < kBatches / 2) continue;
    const double rows = static_cast<double>(targets.size());
    gains.by_batch.push_back((right - guessed) / rows);
    right_of_all += right;
    guessed_of_all += guessed;
  }
  const double all = static_cast<double>(std::max<std::int64_t>(1, gains.targets));
  return gains.test(
      fmt::format("which words a row has tells its label in {:.1f} % of {} rows, the most frequent label "
                  "{:.1f} %",
                  100 * right_of_all / all, gains.targets, 100 * guessed_of_all / all));
}

}  // namespace

std::optional<DataTest> test_data(const Source& source, std::uint64_t seed) {
  Batch batch;
  source.fill(0, seed, batch);
  const BatchTensor *tokens = batch.find("tokens"), *targets = batch.find("targets");
  if (tokens == nullptr || targets == nullptr || !tokens->holds_ids() || !targets->holds_ids()) return std::nullopt;
  if (batch.ids("tokens").size() == batch.ids("targets").size()) return test_following(source, seed);
  if (targets->shape.rank() == 1 && source.classes() > 0) return test_labels(source, seed);
  return std::nullopt;
}

}  // namespace norma
