// The exact entropy of the sentences, from its choices alone. The state of the generator is a small Markov chain once
// words and values are left out: which words were chosen never changes what is chosen next, only its name.
#include <cmath>
#include <map>
#include <vector>

#include "data/sentences.h"

namespace norma::sentences {
namespace {

double plogp(double p) { return p > 0 ? -p * std::log(p) : 0.0; }
double coin_entropy(double p) { return plogp(p) + plogp(1 - p); }

double rank_entropy() {
  double sum = 0;
  for (const double p : kRankChance) sum += plogp(p);
  return sum;
}

// Where the generator stands before a token: {place, level} in a clause, or {operands of each open expression}.
enum Place { subject, after_noun, verb, expression_start, inside, value, stop };
struct State {
  Place place;
  std::vector<int> levels;
  auto operator<=>(const State&) const = default;
};

struct Move {
  double chance;
  State next;
};

struct Choice {
  double entropy;  // of the token, in nats
  std::vector<Move> moves;
};

State after_verb(int level) { return level == 0 ? State{expression_start, {}} : State{verb, {level - 1}}; }

Choice inside_expression(const std::vector<int>& operands, int depth) {
  const double close = operands.back() == kMostOperands ? 1.0 : operands.back() >= kFewestOperands ? kCloseChance : 0.0;
  const double nest = static_cast<int>(operands.size()) < depth ? kNestChance : 0.0;
  Choice choice{coin_entropy(close) +
                    (1 - close) * (coin_entropy(nest) + nest * std::log(kOperators) + (1 - nest) * std::log(kDigits)),
                {}};
  std::vector<int> closed(operands.begin(), operands.end() - 1), nested = operands, taken = operands;
  if (!closed.empty()) ++closed.back();
  nested.push_back(0);
  ++taken.back();
  if (close > 0) choice.moves.push_back({close, closed.empty() ? State{value, {}} : State{inside, closed}});
  if ((1 - close) * nest > 0) choice.moves.push_back({(1 - close) * nest, {inside, nested}});
  if ((1 - close) * (1 - nest) > 0) choice.moves.push_back({(1 - close) * (1 - nest), {inside, taken}});
  return choice;
}

Choice choice_at(const State& state, int depth) {
  const int level = state.levels.empty() ? 0 : state.levels[0];
  switch (state.place) {
    case subject:
      return {coin_entropy(kAdjectiveChance) + rank_entropy() + (1 - kAdjectiveChance) * std::log(kClasses),
              {{kAdjectiveChance, state}, {1 - kAdjectiveChance, {after_noun, {level}}}}};
    case after_noun: {
      const double that = level + 1 < depth ? kThatChance : 0.0;
      Choice choice{coin_entropy(that) + (1 - that) * rank_entropy(), {{1 - that, after_verb(level)}}};
      if (that > 0) choice.moves.push_back({that, {subject, {level + 1}}});
      return choice;
    }
    case verb: return {rank_entropy(), {{1.0, after_verb(level)}}};
    case expression_start: return {std::log(kOperators), {{1.0, {inside, {0}}}}};
    case inside: return inside_expression(state.levels, depth);
    case value: return {0.0, {{1.0, {stop, {}}}}};
    case stop: break;
  }
  return {0.0, {{1.0, {subject, {0}}}}};
}

// The chain with states numbered; 0 is the start of a sentence.
struct Chain {
  struct Edge {
    double chance;
    std::size_t to;
  };
  std::vector<double> entropy;
  std::vector<std::vector<Edge>> edges;

  explicit Chain(int depth) {
    std::map<State, std::size_t> numbers;
    std::vector<State> states;
    const auto number_of = [&](const State& state) {
      const auto [place, added] = numbers.try_emplace(state, states.size());
      if (added) states.push_back(state);
      return place->second;
    };
    number_of({subject, {0}});
    for (std::size_t i = 0; i < states.size(); ++i) {
      const Choice choice = choice_at(State(states[i]), depth);
      entropy.push_back(choice.entropy);
      edges.emplace_back();
      for (const Move& move : choice.moves) edges[i].push_back({move.chance, number_of(move.next)});
    }
  }
};

}  // namespace

double mean_entropy(std::int64_t depth, std::int64_t time) {
  const Chain chain(static_cast<int>(depth));
  std::vector<double> now(chain.entropy.size(), 0.0), next;
  now[0] = 1;
  double sum = 0;
  for (std::int64_t t = 0; t < time; ++t) {
    next.assign(now.size(), 0.0);
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (now[i] == 0) continue;
      sum += now[i] * chain.entropy[i];
      for (const Chain::Edge& edge : chain.edges[i]) next[edge.to] += now[i] * edge.chance;
    }
    now.swap(next);
  }
  return sum / static_cast<double>(time);
}

double entropy_rate(std::int64_t depth) {
  const auto deepest = static_cast<double>(depth);
  // Clauses: level k is reached with chance that^k; each has 1/(1-a) choices of adjective or noun and one verb.
  double tokens = 0, nats = 0, reached = 1;
  for (double level = 0; level < deepest; ++level, reached *= kThatChance) {
    const double that = level + 1 < deepest ? kThatChance : 0.0;
    const double words = 1 / (1 - kAdjectiveChance);
    tokens += reached * (words + that + 1);
    nats += reached * (words * (coin_entropy(kAdjectiveChance) + rank_entropy()) + std::log(kClasses) +
                       coin_entropy(that) + rank_entropy());
  }
  // Expressions, from the deepest level outwards. The expected number of operands is 2 + 1/2 + 1/4; the choice to close
  // is made after the second and, with chance 1/2, after the third.
  const double operands = 2 + (1 - kCloseChance) + (1 - kCloseChance) * (1 - kCloseChance);
  double inner_tokens = 0, inner_nats = 0;
  for (double level = deepest; level >= 1; --level) {
    const double nest = level < deepest ? kNestChance : 0.0;
    const double operand_tokens = (1 - nest) + nest * inner_tokens;
    const double operand_nats = coin_entropy(nest) + (1 - nest) * std::log(kDigits) + nest * inner_nats;
    inner_tokens = 2 + operands * operand_tokens;
    inner_nats = std::log(kOperators) + operands * operand_nats + (1 + (1 - kCloseChance)) * coin_entropy(kCloseChance);
  }
  return (nats + inner_nats) / (tokens + inner_tokens + 2);
}

}  // namespace norma::sentences
