// What the names of a formula stand for at one place of a stack, before the first step.
#pragma once

#include <cstdint>

#include "norma/schemes/evaluate.h"
#include "norma/schemes/scheme.h"

namespace norma {

// Which of the constants of a scheme apply: those of a stack alone, or of one of the two stacks of an encoder-decoder.
enum class StackRole { alone, encoder, decoder };

struct StartPlace {
  std::int64_t layer = 1;      // l, from 1
  std::int64_t sublayer = 1;   // k, from 1
  std::int64_t sublayers = 2;  // n
  std::int64_t layers = 1;     // N of an encoder or a stack alone
  std::int64_t decoder = 1;    // M; of a stack alone: the same as N
  std::int64_t width = 1;      // d
  std::int64_t heads = 1;
  StackRole role = StackRole::alone;
};

// l, k, n, N, M, d, heads, and the scheme's constants; schedules have their value at step t = 0 (of T = 1). Throws
// Error when constants need one another or have no value.
Variables start_numbers(const Scheme& scheme, const StartPlace& place);

// Constants that apply to a role: its own, and the common ones it does not replace.
std::vector<NamedExpression> start_constants(const Scheme& scheme, StackRole role);

}  // namespace norma
