// A place in a model, and what the numbers of a scheme are there.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "norma/schemes/evaluate.h"
#include "norma/schemes/scheme.h"

namespace norma {

enum class StackKind { single, encoder, decoder };  // the last two: of an encoder-decoder

struct Place {
  StackKind stack = StackKind::single;
  std::int64_t layers = 1;        // of this stack
  std::int64_t other_layers = 0;  // of the other stack of an encoder-decoder
  std::int64_t width = 1;
  std::int64_t heads = 1;
  std::int64_t layer = 1;      // l
  std::int64_t sublayer = 1;   // k
  std::int64_t sublayers = 0;  // of all layers together, n; 0: two in each
  std::int64_t since = -1;     // branches since a projection last made the stream anew; -1: k - 1
};

// l, k, n, N, M, d, heads, since, and the constants that do not depend on the step, `given` ones instead of the
// scheme's own. N and M are the depth of the stack at hand, except inside [constants.encoder] and [constants.decoder],
// where they are the depths of encoder and decoder. Throws Error for constants that need one another, and for a given
// name that the scheme does not have.
Variables numbers_at(const Scheme& scheme, const Place& place, const Variables& given = {});

// The same, and the constants that depend on the step, as they are before the first (t = 0, of T = 1).
Variables numbers_at_start(const Scheme& scheme, const Place& place, const Variables& given = {});

// The constants of a stack: the common ones, replaced or joined by the stack's own.
std::vector<NamedExpression> constants_of(const Scheme& scheme, StackKind stack);

// A constant that depends on the step t, with what it needs to be computed.
struct StepSchedule {
  std::string name;
  std::vector<NamedExpression> chain;  // it and the schedules it depends on, each after those it needs
  std::set<std::string> names;         // everything that it depends on
};
std::vector<StepSchedule> schedules_of(const Scheme& scheme, StackKind stack, const Variables& given = {});

}  // namespace norma
