// Beam search with length normalisation over many prefixes at once.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "norma/core/error.h"
#include "norma/train/generate.h"
#include "train/generate_tokens.h"

namespace norma {
namespace {

struct Alive {
  std::vector<std::int32_t> tokens;  // with the prefix
  double log_probability = 0;
};

struct Candidate {
  double log_probability;
  std::size_t parent;  // index into the beam
  std::int32_t token;
};

// The beam of one prefix.
class Beam {
 public:
  Beam(const std::vector<std::int32_t>& prefix, const TokenRules& rules, const BeamOptions& options, std::int64_t most)
      : rules_(rules), options_(options), most_(most), prefix_(prefix.size()), alive_{{prefix, 0}} {}

  const std::vector<Alive>& alive() const { return alive_; }
  bool done() const { return alive_.empty(); }

  // `rows` of the predictor belong to alive(), in order.
  void extend(const Predictor& predictor, std::int64_t first_row, const AllowedTokens& allowed) {
    const auto width = static_cast<std::size_t>(options_.beam - ended_);
    std::vector<Candidate> candidates;
    for (std::size_t parent = 0; parent < alive_.size(); ++parent) {
      const std::int64_t row = first_row + static_cast<std::int64_t>(parent);
      const std::span<const float> logits = predictor.logits(row);
      for (const std::int32_t token : allowed.best(logits, width)) {
        const double gain = static_cast<double>(logits[static_cast<std::size_t>(token)]) - predictor.log_sum(row);
        candidates.push_back({alive_[parent].log_probability + gain, parent, token});
      }
    }
    // Stable: what is equal stays in order of parents, then of tokens.
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.log_probability > b.log_probability; });
    candidates.resize(std::min(candidates.size(), width));
    std::vector<Alive> next;
    for (const Candidate& candidate : candidates) {
      const std::vector<std::int32_t>& parent = alive_[candidate.parent].tokens;
      if (candidate.token == rules_.end) {
        finish(parent, candidate.log_probability, true);
        ++ended_;
        continue;
      }
      next.push_back({parent, candidate.log_probability});
      next.back().tokens.push_back(candidate.token);
    }
    alive_ = std::move(next);
    if (++length_ == most_) cut();
    if (best_ && !alive_.empty() && best_->score >= best_possible()) alive_.clear();
  }

  Hypothesis best() const { return best_.value_or(Hypothesis{}); }

 private:
  void finish(const std::vector<std::int32_t>& tokens, double log_probability, bool ended) {
    const std::int64_t length = std::ssize(tokens) - static_cast<std::int64_t>(prefix_) + (ended ? 1 : 0);
    const double score = length_normalised(log_probability, length, options_.alpha);
    if (best_ && best_->score >= score) return;
    best_ = {{tokens.begin() + static_cast<std::ptrdiff_t>(prefix_), tokens.end()}, log_probability, score, ended};
  }

  void cut() {
    for (const Alive& hypothesis : alive_) finish(hypothesis.tokens, hypothesis.log_probability, false);
    alive_.clear();
  }

  // Log-probabilities only fall, and the longest hypothesis divides them by most.
  double best_possible() const { return length_normalised(alive_.front().log_probability, most_, options_.alpha); }

  const TokenRules& rules_;
  const BeamOptions& options_;
  std::int64_t most_, length_ = 0, ended_ = 0;
  std::size_t prefix_;
  std::vector<Alive> alive_;  // most probable first
  std::optional<Hypothesis> best_;
};

}  // namespace

double length_normalised(double log_probability, std::int64_t length, double alpha) {
  return log_probability / std::pow((5.0 + static_cast<double>(length)) / 6.0, alpha);
}

std::vector<Hypothesis> beam_search(Predictor& predictor, std::span<const std::vector<std::int32_t>> prefixes,
                                    const TokenRules& rules, const BeamOptions& options) {
  if (options.beam < 1) fail("a beam of {}; expected at least 1", options.beam);
  if (!(options.alpha >= 0)) fail("a length exponent of {}; expected 0 or more", options.alpha);
  if (predictor.rows_per_source() != options.beam && predictor.has_source())
    fail("a beam of {} with {} rows for each source", options.beam, predictor.rows_per_source());
  if (std::ssize(prefixes) * options.beam > predictor.rows())
    fail("{} prefixes with a beam of {} need more than {} rows", prefixes.size(), options.beam, predictor.rows());
  const std::int64_t most = most_tokens(predictor, prefixes, rules);
  const AllowedTokens allowed(predictor.vocabulary(), rules);
  std::vector<Beam> beams;
  for (const std::vector<std::int32_t>& prefix : prefixes) beams.emplace_back(prefix, rules, options, most);
  std::vector<std::vector<std::int32_t>> rows;
  for (std::int64_t length = 0; length < most; ++length) {
    if (std::all_of(beams.begin(), beams.end(), [](const Beam& beam) { return beam.done(); })) break;
    rows.assign(static_cast<std::size_t>(predictor.rows()), {});
    for (std::size_t i = 0; i < beams.size(); ++i) {
      for (std::size_t k = 0; k < beams[i].alive().size(); ++k)
        rows[i * static_cast<std::size_t>(options.beam) + k] = beams[i].alive()[k].tokens;
    }
    predictor.run(rows);
    for (std::size_t i = 0; i < beams.size(); ++i) {
      if (!beams[i].done()) beams[i].extend(predictor, static_cast<std::int64_t>(i) * options.beam, allowed);
    }
  }
  std::vector<Hypothesis> best;
  for (const Beam& beam : beams) best.push_back(beam.best());
  return best;
}

}  // namespace norma
