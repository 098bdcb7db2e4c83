// Splits a formula into tokens.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "norma/schemes/formula.h"

namespace norma {

struct Token {
  enum class Kind { number, name, text, symbol, end };
  Kind kind = Kind::end;
  Span span = {};
  std::string text = {};  // the name, the symbol ("<=", "+"), or the text between quotes
  double number = 0;

  bool is(std::string_view symbol) const { return (kind == Kind::symbol || kind == Kind::name) && text == symbol; }
};

// Always ends with an `end` token. Throws FormulaError on a character that starts no token.
std::vector<Token> tokenise(std::string_view text);

}  // namespace norma
