#include "schemes/lexer.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace norma {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Longer symbols first, so that "<=" is not read as "<".
constexpr std::array<std::string_view, 18> kSymbols = {"<=", ">=", "==", "!=", "+", "-", "*", "/", "^",
                                                       "(",  ")",  ",",  ";",  "=", "<", ">", "[", "]"};

std::string describe(char c) {
  const auto code = static_cast<unsigned char>(c);
  return code >= 0x20 && code < 0x7f ? fmt::format("'{}'", c) : fmt::format("byte 0x{:02x}", code);
}

// What papers and word processors write, and what is meant by it.
constexpr std::array<std::pair<std::string_view, std::string_view>, 11> kMeant = {{{"\u2212", "-"},
                                                                                   {"\u2013", "-"},
                                                                                   {"\u2014", "-"},
                                                                                   {"\u00b7", "*"},
                                                                                   {"\u22c5", "*"},
                                                                                   {"\u00d7", "*"},
                                                                                   {"\u2217", "*"},
                                                                                   {"\u00f7", "/"},
                                                                                   {"\u221a", "sqrt(...)"},
                                                                                   {"\u00b2", "^2"},
                                                                                   {"\u2295", "+"}}};

std::string foreign(std::string_view character) {
  for (const auto& [written, meant] : kMeant) {
    if (character == written) return fmt::format("'{}' is not part of the language; write {}", written, meant);
  }
  return "letters other than a to z are not part of the language; a constant is a number, as in x + 0.5*f(x), or has a "
         "name under [constants] in a scheme file";
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::vector<Token> run() {
    std::vector<Token> tokens;
    for (;;) {
      while (at_ < text_.size() && is_space(text_[at_])) ++at_;
      if (at_ == text_.size()) break;
      tokens.push_back(next());
    }
    tokens.push_back({.kind = Token::Kind::end, .span = {text_.size(), text_.size()}});
    return tokens;
  }

 private:
  Token next() {
    const char c = text_[at_];
    if (is_digit(c) || (c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]))) return number();
    if (is_letter(c)) return name();
    if (c == '"') return quoted();
    for (const std::string_view symbol : kSymbols) {
      if (text_.substr(at_, symbol.size()) == symbol) {
        const Token token{.kind = Token::Kind::symbol, .span = {at_, at_ + symbol.size()}, .text = std::string(symbol)};
        at_ += symbol.size();
        return token;
      }
    }
    if (static_cast<unsigned char>(c) >= 0x80) {
      std::size_t end = at_ + 1;
      while (end < text_.size() && (static_cast<unsigned char>(text_[end]) & 0xc0u) == 0x80u) ++end;
      throw FormulaError(text_, {at_, end}, foreign(text_.substr(at_, end - at_)));
    }
    throw FormulaError(text_, {at_, at_ + 1}, fmt::format("{} is not part of the language", describe(c)));
  }

  Token number() {
    const char* begin = text_.data() + at_;
    double value = 0;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    const Span span{at_, at_ + static_cast<std::size_t>(end - begin)};
    if (error != std::errc() || !std::isfinite(value)) {
      throw FormulaError(text_, {span.begin, std::max(span.end, span.begin + 1)}, "this number is out of range");
    }
    at_ = span.end;
    if (at_ < text_.size() && is_letter(text_[at_])) {
      throw FormulaError(text_, {at_, at_ + 1}, "a number is followed by a letter; write a product as 2*x");
    }
    return {.kind = Token::Kind::number, .span = span, .text = std::string(begin, end), .number = value};
  }

  Token name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    return {.kind = Token::Kind::name, .span = {begin, at_}, .text = std::string(text_.substr(begin, at_ - begin))};
  }

  Token quoted() {
    const std::size_t begin = at_++;
    while (at_ < text_.size() && text_[at_] != '"') ++at_;
    if (at_ == text_.size()) throw FormulaError(text_, {begin, begin + 1}, "this quote is never closed");
    ++at_;
    return {
        .kind = Token::Kind::text, .span = {begin, at_}, .text = std::string(text_.substr(begin + 1, at_ - begin - 2))};
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<Token> tokenise(std::string_view text) { return Lexer(text).run(); }

}  // namespace norma
