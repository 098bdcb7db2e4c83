#include "store/metrics_line.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>
#include <system_error>

#include "norma/core/error.h"
#include "store/json_text.h"

namespace norma {
namespace {

std::string print_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";  // stays a floating number when read back
  return text;
}

struct Printer {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return print_number(value); }
  std::string operator()(const std::string& value) const { return quote_json(value); }
  std::string operator()(const std::vector<double>& values) const {
    std::string text = "[";
    for (const double value : values) text += (text.size() > 1 ? "," : "") + print_number(value);
    return text + ']';
  }
};

class LineParser {
 public:
  explicit LineParser(std::string_view line) : line_(line) {}

  MetricRecord parse() {
    MetricRecord record;
    std::set<std::string> names;
    bool has_step = false;
    expect('{');
    if (!accept('}')) {
      do {
        std::string name = string();
        if (!names.insert(name).second) fail("'{}' occurs twice", name);
        expect(':');
        MetricValue parsed = value();
        if (name == "step") {
          const std::int64_t* const step = std::get_if<std::int64_t>(&parsed);
          if (step == nullptr || *step < 0) fail("the step is not a whole number from 0 on");
          record.step = *step;
          has_step = true;
        } else {
          record.metrics.push_back({std::move(name), std::move(parsed)});
        }
      } while (accept(','));
      expect('}');
    }
    skip_spaces();
    if (at_ != line_.size()) unexpected("the end of the line");
    if (!has_step) fail("there is no step");
    return record;
  }

 private:
  void skip_spaces() {
    while (at_ < line_.size() && (line_[at_] == ' ' || line_[at_] == '\t' || line_[at_] == '\r')) ++at_;
  }

  bool accept(char c) {
    skip_spaces();
    if (at_ == line_.size() || line_[at_] != c) return false;
    ++at_;
    return true;
  }

  bool accept_word(std::string_view word) {
    skip_spaces();
    if (!line_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  void expect(char c) {
    if (!accept(c)) unexpected(fmt::format("'{}'", c));
  }

  [[noreturn]] void unexpected(std::string_view expected) const { fail("column {}: expected {}", at_ + 1, expected); }

  std::string string() {
    skip_spaces();
    const std::size_t begin = at_;
    expect('"');
    for (; at_ < line_.size() && line_[at_] != '"'; ++at_) {
      if (line_[at_] == '\\') ++at_;
    }
    if (at_ >= line_.size()) unexpected("'\"'");
    ++at_;
    return unquote_json(line_.substr(begin, at_ - begin));
  }

  MetricValue number() {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (accept_word("NaN")) return std::numeric_limits<double>::quiet_NaN();
    if (accept_word("Infinity")) return kInfinity;
    if (accept_word("-Infinity")) return -kInfinity;
    const std::size_t length = std::min(line_.find_first_not_of("+-.0123456789eE", at_), line_.size()) - at_;
    const std::string_view text = line_.substr(at_, length);
    const auto whole = [&](std::from_chars_result result) {
      return result.ec == std::errc() && result.ptr == text.data() + text.size();
    };
    std::int64_t integer = 0;
    double real = 0;
    const bool is_integer = whole(std::from_chars(text.data(), text.data() + text.size(), integer));
    if (!is_integer && !whole(std::from_chars(text.data(), text.data() + text.size(), real)))
      unexpected("a number, a string, true, false or an array of numbers");
    at_ += length;
    return is_integer ? MetricValue(integer) : MetricValue(real);
  }

  MetricValue value() {
    skip_spaces();
    if (at_ < line_.size() && line_[at_] == '"') return string();
    if (accept_word("true")) return true;
    if (accept_word("false")) return false;
    if (!accept('[')) return number();
    std::vector<double> numbers;
    if (accept(']')) return numbers;
    do {
      skip_spaces();
      const MetricValue element = number();
      const std::int64_t* const integer = std::get_if<std::int64_t>(&element);
      numbers.push_back(integer != nullptr ? static_cast<double>(*integer) : std::get<double>(element));
    } while (accept(','));
    expect(']');
    return numbers;
  }

  std::string_view line_;
  std::size_t at_ = 0;
};

}  // namespace

std::string print_metrics_line(std::int64_t step, std::span<const Metric> metrics) {
  std::string line = fmt::format("{{\"step\":{}", step);
  std::set<std::string_view> names = {"step"};
  for (const Metric& metric : metrics) {
    if (!names.insert(metric.name).second) fail("the record of step {} would hold '{}' twice", step, metric.name);
    line += ',' + quote_json(metric.name) + ':' + std::visit(Printer(), metric.value);
  }
  return line + "}\n";
}

MetricRecord parse_metrics_line(std::string_view line) { return LineParser(line).parse(); }

}  // namespace norma
