// Recursive descent over:
//   formula     = statement { ";" statement } [ ";" ]
//   statement   = name "=" expression | expression
//   expression  = "if" expression "then" expression "else" expression | or
//   or          = and { "or" and }            and   = not { "and" not }      not = "not" not | comparison
//   comparison  = sum [ ("<" | "<=" | ">" | ">=" | "==" | "!=") sum ]
//   sum         = product { ("+" | "-") product }
//   product     = unary { ("*" | "/") unary }
//   unary       = "-" unary | power           power = primary [ "^" unary ]
//   primary     = number | "text" | name | name "(" arguments ")" | "(" expression ")"
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "norma/core/printable.h"
#include "norma/schemes/formula.h"
#include "schemes/lexer.h"

namespace norma {
namespace {

constexpr std::array<std::string_view, 6> kKeywords = {"if", "then", "else", "and", "or", "not"};

bool is_keyword(std::string_view name) {
  for (const std::string_view keyword : kKeywords) {
    if (keyword == name) return true;
  }
  return false;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {
    if (text.size() > kLongestFormula) {
      throw Error(fmt::format("the formula is {} bytes long; at most {} are read", text.size(), kLongestFormula));
    }
    tokens_ = tokenise(text);
  }

  Formula formula() {
    Formula result{.text = std::string(text_), .statements = {}};
    if (peek().kind == Token::Kind::end) error("the formula is empty; expected an expression such as x + f(norm(x))");
    while (peek().kind != Token::Kind::end) {
      if (!result.statements.empty() && result.statements.back().target.empty()) {
        error_at(result.statements.back().value->span,
                 "only the last statement may be a value without a name; write name = ... here");
      }
      result.statements.push_back(statement());
      if (peek().kind == Token::Kind::end) break;
      if (!peek().is(";")) error(fmt::format("expected ; or an operator but found {}", describe(peek())));
      ++at_;
    }
    return result;
  }

  ExpressionPtr only_expression() {
    ExpressionPtr result = expression();
    if (peek().kind != Token::Kind::end)
      error(fmt::format("expected an operator or the end but found {}", describe(peek())));
    return result;
  }

 private:
  // Counts nesting, so that hostile input meets an error before it meets the end of the stack.
  class Depth {
   public:
    explicit Depth(Parser& parser) : parser_(parser) {
      if (++parser_.depth_ > kDeepestFormula)
        parser_.error(fmt::format("the formula is nested deeper than {}", kDeepestFormula));
    }
    ~Depth() { --parser_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    Parser& parser_;
  };

  const Token& peek() const { return tokens_[at_]; }
  const Token& after() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  const Token& take() { return tokens_[at_++]; }

  static std::string describe(const Token& token) {
    return token.kind == Token::Kind::end ? "the end of the formula" : fmt::format("'{}'", token.text);
  }
  [[noreturn]] void error(std::string_view message) const { error_at(peek().span, message); }
  [[noreturn]] void error_at(Span span, std::string_view message) const { throw FormulaError(text_, span, message); }

  void expect(std::string_view symbol, std::string_view where) {
    if (!peek().is(symbol)) error(fmt::format("expected {} {} but found {}", symbol, where, describe(peek())));
    ++at_;
  }

  Statement statement() {
    if (peek().kind == Token::Kind::name && after().is("=")) {
      if (is_keyword(peek().text))
        error(fmt::format("'{}' is a word of the language and cannot be assigned to", peek().text));
      Statement result{.target = peek().text, .target_span = peek().span, .value = nullptr};
      at_ += 2;
      result.value = expression();
      return result;
    }
    return {.target = "", .value = expression()};
  }

  ExpressionPtr expression() {
    const Depth depth(*this);
    if (!peek().is("if")) return either();
    const std::size_t begin = take().span.begin;
    ExpressionPtr condition = expression();
    expect("then", "after the condition");
    ExpressionPtr yes = expression();
    expect("else", "after the value of then");
    ExpressionPtr no = expression();
    const Span span{begin, no->span.end};
    return make({.kind = Expression::Kind::conditional, .span = span, .children = {condition, yes, no}});
  }

  static ExpressionPtr make(Expression expression) { return std::make_shared<const Expression>(std::move(expression)); }

  static ExpressionPtr binary(std::string name, ExpressionPtr left, ExpressionPtr right) {
    const Span span{left->span.begin, right->span.end};
    return make({.kind = Expression::Kind::binary, .span = span, .name = std::move(name), .children = {left, right}});
  }

  // Left-associative chain of operators. Chains grow the tree to the left, so they count as depth too.
  template <typename Operand>
  ExpressionPtr chain(std::initializer_list<std::string_view> operators, Operand operand) {
    ExpressionPtr left = operand();
    for (int length = 0;; ++length) {
      const auto* found = operators.begin();
      while (found != operators.end() && !peek().is(*found)) ++found;
      if (found == operators.end()) return left;
      if (length >= kDeepestFormula) error(fmt::format("more than {} operators in a row", kDeepestFormula));
      std::string name = take().text;
      left = binary(std::move(name), left, operand());
    }
  }

  ExpressionPtr either() {
    return chain({"or"}, [&] { return both(); });
  }
  ExpressionPtr both() {
    return chain({"and"}, [&] { return negation(); });
  }

  ExpressionPtr negation() {
    if (!peek().is("not")) return comparison();
    const Depth depth(*this);
    const std::size_t begin = take().span.begin;
    return prefix("not", begin, negation());
  }

  static ExpressionPtr prefix(std::string name, std::size_t begin, ExpressionPtr operand) {
    const Span span{begin, operand->span.end};
    return make({.kind = Expression::Kind::unary, .span = span, .name = std::move(name), .children = {operand}});
  }

  ExpressionPtr comparison() {
    ExpressionPtr left = sum();
    for (const std::string_view name : {"<=", ">=", "==", "!=", "<", ">"}) {
      if (!peek().is(name)) continue;
      ++at_;
      return binary(std::string(name), left, sum());
    }
    return left;
  }

  ExpressionPtr sum() {
    return chain({"+", "-"}, [&] { return product(); });
  }
  ExpressionPtr product() {
    return chain({"*", "/"}, [&] { return unary(); });
  }

  ExpressionPtr unary() {
    if (!peek().is("-")) return power();
    const Depth depth(*this);
    const std::size_t begin = take().span.begin;
    return prefix("-", begin, unary());
  }

  ExpressionPtr power() {
    ExpressionPtr base = primary();
    if (!peek().is("^")) return base;
    const Depth depth(*this);
    ++at_;
    return binary("^", base, unary());
  }

  ExpressionPtr primary() {
    const Token& token = peek();
    switch (token.kind) {
      case Token::Kind::number:
        ++at_;
        return make({.kind = Expression::Kind::number, .span = token.span, .number = token.number});
      case Token::Kind::text:
        ++at_;
        return make({.kind = Expression::Kind::text, .span = token.span, .name = token.text});
      case Token::Kind::name:
        if (is_keyword(token.text)) error(fmt::format("expected a value but found the word '{}'", token.text));
        return after().is("(") ? call() : simple_name();
      case Token::Kind::symbol:
      case Token::Kind::end: break;
    }
    if (!token.is("(")) error(fmt::format("expected a value but found {}", describe(token)));
    const std::size_t begin = take().span.begin;
    Expression inside = *expression();
    expect(")", "to close the parenthesis");
    inside.span = {begin, tokens_[at_ - 1].span.end};
    return make(std::move(inside));
  }

  ExpressionPtr simple_name() {
    const Token& token = take();
    return make({.kind = Expression::Kind::name, .span = token.span, .name = token.text});
  }

  ExpressionPtr call() {
    Expression result{.kind = Expression::Kind::call, .span = peek().span, .name = peek().text};
    at_ += 2;
    while (!peek().is(")")) {
      if (!result.children.empty() || !result.named.empty()) expect(",", "or ) after an argument");
      if (peek().kind == Token::Kind::name && after().is("=")) {
        NamedArgument argument{.name = peek().text, .value = nullptr, .span = peek().span};
        for (const NamedArgument& other : result.named) {
          if (other.name == argument.name) error(fmt::format("the argument '{}' is given twice", argument.name));
        }
        at_ += 2;
        argument.value = expression();
        argument.span.end = argument.value->span.end;
        result.named.push_back(std::move(argument));
      } else {
        if (!result.named.empty()) error("a positional argument cannot follow a named one");
        result.children.push_back(expression());
      }
    }
    result.span.end = take().span.end;
    return make(std::move(result));
  }

  std::string_view text_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

// The line of the text that holds `at`, and where in it.
std::pair<std::string, std::size_t> line_of(std::string_view text, std::size_t at) {
  at = std::min(at, text.size());
  const std::size_t newline = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
  const std::size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
  const std::size_t end = std::min(text.find('\n', at), text.size());
  std::string line(text.substr(begin, end - begin));
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) == 0x7f) c = ' ';
  }
  return {line, at - begin};
}

// Of UTF-8, where a character is one column.
std::size_t shown_columns(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

// The end of a character of UTF-8, not before `at`.
std::size_t character_end(std::string_view text, std::size_t at) {
  while (at < text.size() && (text[at] & 0xc0) == 0x80) ++at;
  return std::min(at, text.size());
}

// The line of a mistake with a mark below it; of a long line what surrounds the mistake.
std::string show(std::string_view text, Span span, std::string_view message) {
  constexpr std::size_t kShown = 100, kBefore = 40;
  const auto [line, at] = line_of(text, span.begin);
  const std::size_t begin = line.size() <= kShown || at <= kBefore ? 0 : character_end(line, at - kBefore);
  const std::size_t end = character_end(line, std::min(begin + kShown, line.size()));
  const std::string lead = begin == 0 ? "" : "... ", rest = end == line.size() ? "" : " ...";
  const std::size_t before = shown_columns(lead + printable(line.substr(begin, at - begin))),
                    marked = shown_columns(printable(line.substr(at, std::min(span.end - span.begin, end - at))));
  return fmt::format("{}\n  {}{}{}\n  {}{}", message, lead, printable(line.substr(begin, end - begin)), rest,
                     std::string(before, ' '), std::string(std::max<std::size_t>(1, marked), '^'));
}

}  // namespace

FormulaError::FormulaError(std::string_view text, Span span, std::string_view message)
    : Error(show(text, span, message)), span_(span), message_(message) {}

Formula parse_formula(std::string_view text) { return Parser(text).formula(); }
ExpressionPtr parse_expression(std::string_view text) { return Parser(text).only_expression(); }

}  // namespace norma
