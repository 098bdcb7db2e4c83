// What init gains do to branches that were measured with gain 1.
#pragma once

#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "theory/program.h"

namespace norma {

// How init gains g move a branch that was measured with gain 1: its input and output are scaled, and changes of its
// weights count for more or less. Squares throughout.
struct BranchScale {
  double input = 1, output = 1;
  double weight = 1;
  double noise_last = 1, noise_first = 1, noise_scores = 1;
};

struct AttentionGains {
  double query = 1, key = 1, value = 1, out = 1;
};

// Of cross-attention: what scales its queries' input, and what its memory.
struct CrossScale {
  BranchScale query = {};
  double memory = 1;
};

// Whether the table of laws has a row for it.
bool has_gain_law(const BranchKind& kind);

// The gain of a role over Xavier.
class RoleGains {
 public:
  explicit RoleGains(const TheorySurroundings& surroundings) : s_(surroundings) {}

  void read();
  bool constant() const;
  BranchScale scale(const BranchKind& kind, bool normed, const Variables& place) const;
  // Whether the size of what the branch reads changes nothing: a norm follows its first product.
  bool forgets_size(const BranchKind& kind) const { return &kind == forgetful_; }
  AttentionGains attention(const Variables& place) const;
  // Cross-attention was measured with queries and memory of one size. With gains q, k, v, o it is K f(a x, b m), where
  // a b = q k keeps the scores and a and b bring both inputs to that size.
  CrossScale cross(bool normed, double variance, double memory_variance, const Variables& place) const;

 private:
  using Rules = std::map<std::string, Coefficient, std::less<>>;

  AttentionGains cross_gains(const Variables& place) const;
  static bool moves_branches(const std::string& role);
  static const Coefficient* rule(const Rules& rules, const char* role);
  double gain(const char* role, double xavier, const Variables& place) const;
  BranchScale ffn_scale(bool normed, const Variables& place) const;
  // The nearest rule of a chain of roles.
  double factor(std::initializer_list<std::string_view> roles, const Variables& place) const;
  BranchScale conv_scale(bool normed, const Variables& place) const;
  BranchScale token_scale(bool normed, const Variables& place) const;
  static BranchScale scale_of_two(double first, double last, bool normed);  // matrices with these gains
  BranchScale attention_scale(bool normed, const Variables& place) const;
  bool values_are_normed(const char* branch) const;

  friend struct GainLaws;

  const TheorySurroundings& s_;
  Rules gains_, deviations_;
  std::optional<AttentionGains> attention_ = {}, cross_ = {};  // where they are the same everywhere
  const BranchKind* forgetful_ = nullptr;
  bool attention_values_normed_ = false, cross_values_normed_ = false;
};

}  // namespace norma
