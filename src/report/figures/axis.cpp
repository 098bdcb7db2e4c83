#include "report/figures/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace norma::draw {
namespace {

constexpr const char* kMinus = "\xe2\x88\x92";

// At least two where there is room for one.
std::vector<double> linear_ticks(double low, double high, int about) {
  const double raw = (high - low) / std::max(1, about), power = std::pow(10, std::floor(std::log10(raw)));
  std::vector<double> all;
  for (const double factor : {10.0, 5.0, 2.0, 1.0, 0.5, 0.2}) {
    const double step = factor * power;
    if (step < raw * 0.999 && all.size() > 1) break;
    all.clear();
    for (double i = std::ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; ++i) all.push_back(i * step);
  }
  return all;
}

std::vector<double> decades(double low, double high, int skip, const std::vector<double>& steps) {
  std::vector<double> all;
  const int first = static_cast<int>(std::floor(std::log10(low))), last = static_cast<int>(std::ceil(std::log10(high)));
  for (int power = first; power <= last; ++power) {
    if (power % skip != 0) continue;
    for (const double step : steps) {
      const double value = step * std::pow(10, power);
      if (value >= low * 0.999 && value <= high * 1.001) all.push_back(value);
    }
  }
  return all;
}

bool is_short(const Scale& scale) { return std::log10(scale.high / scale.low) < 0.5; }

std::vector<double> log_ticks(const Scale& scale, int about) {
  if (is_short(scale)) return linear_ticks(scale.low, scale.high, about);
  const double reach = std::log10(scale.high / scale.low);
  std::vector<double> steps = {1};
  if (reach < 0.6 * about) steps = {1, 3};
  if (reach < 0.4 * about) steps = {1, 2, 5};
  std::vector<double> all;
  for (int skip = std::max(1, static_cast<int>(std::ceil(reach / std::max(1, about)))); skip > 0; --skip) {
    all = decades(scale.low, scale.high, skip, steps);
    if (all.size() > 1) return all;
  }
  return linear_ticks(scale.low, scale.high, about);
}

std::string with_minus(std::string text) {
  for (std::size_t at = text.find('-'); at != std::string::npos; at = text.find('-', at)) text.replace(at, 1, kMinus);
  return text;
}

std::string power_of_ten(int power) {
  constexpr const char* kDigits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = power < 0 ? "10⁻" : "10";
  for (const char digit : std::to_string(std::abs(power))) text += kDigits[digit - '0'];
  return text;
}

// "3×10⁻⁵", or "10⁻⁵".
std::string times_power(double value) {
  const int power = static_cast<int>(std::floor(std::log10(std::abs(value)) + 1e-9));
  const double digits = value / std::pow(10, power);
  return std::abs(digits - 1) < 1e-6 ? power_of_ten(power) : plain(digits) + "×" + power_of_ten(power);
}

std::string fixed(double value, int decimals) {
  const std::string text = fmt::format("{:.{}f}", value, decimals);
  return with_minus(text.find_first_of("123456789") == std::string::npos && text[0] == '-' ? text.substr(1) : text);
}

}  // namespace

double Scale::at(double value) const {
  const double share = log ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
  return from + share * (to - from);
}

bool Scale::shows(double value) const { return value >= low && value <= high; }

std::vector<double> Scale::ticks(int about) const {
  return log ? log_ticks(*this, about) : linear_ticks(low, high, about);
}

void Range::add(double value) {
  if (!std::isfinite(value) || (log_ && !(value > 1e-290)) || std::abs(value) > 1e290) return;
  low_ = std::min(low_, value);
  high_ = std::max(high_, value);
}

Scale Range::scale(double from, double to, double margin) const {
  Scale scale{.low = low_, .high = high_, .from = from, .to = to, .log = log_};
  if (empty()) scale.low = log_ ? 0.1 : 0, scale.high = 1;
  if (log_) {
    const double more = std::max(std::pow(scale.high / scale.low, margin), 1.02);
    scale.low /= more;
    scale.high *= more;
  } else {
    const double size = std::max(std::abs(scale.low), std::abs(scale.high));
    const double more = scale.high - scale.low > 1e-9 * size ? margin * (scale.high - scale.low)
                        : size > 0                           ? 0.05 * size
                                                             : 0.5;
    scale.low -= more;
    scale.high += more;
  }
  return scale;
}

std::string plain(double value, int digits) {
  if (std::isnan(value)) return "–";
  if (std::isinf(value)) return value > 0 ? "∞" : std::string(kMinus) + "∞";
  const double size = std::abs(value);
  if (size != 0 && (size < 1e-4 || size >= 1e6)) {
    std::string text = fmt::format("{:.{}e}", value, digits - 1);
    const std::size_t e = text.find('e');
    std::string digits_before = text.substr(0, e);
    if (digits_before.find('.') != std::string::npos) digits_before.erase(digits_before.find_last_not_of('0') + 1);
    if (digits_before.ends_with('.')) digits_before.pop_back();
    return with_minus(fmt::format("{}e{}", digits_before, std::stoi(text.substr(e + 1))));
  }
  const int decimals = size == 0 ? 0 : std::max(0, digits - 1 - static_cast<int>(std::floor(std::log10(size))));
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (text.find('.') != std::string::npos) text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return with_minus(text == "-0" ? "0" : text);
}

std::vector<std::string> tick_texts(const std::vector<double>& ticks, const Scale& scale) {
  std::vector<std::string> texts;
  const double largest = std::max(std::abs(scale.low), std::abs(scale.high));
  const bool far = scale.log && scale.high / scale.low > 1e4;
  if (far || (scale.log ? scale.low : largest) < 1e-4 || largest >= 1e6) {
    for (const double tick : ticks) texts.push_back(tick == 0 ? "0" : times_power(tick));
  } else if (scale.log && !is_short(scale)) {
    for (const double tick : ticks) texts.push_back(plain(tick));
  } else {
    int decimals = 0;
    const auto fits = [&](double tick) {
      const double unit = std::pow(10, decimals);
      return std::abs(std::round(tick * unit) / unit - tick) <= 1e-3 * (scale.high - scale.low);
    };
    while (decimals < 9 && !std::all_of(ticks.begin(), ticks.end(), fits)) ++decimals;
    for (const double tick : ticks) texts.push_back(fixed(tick, decimals));
  }
  return texts;
}

std::string loss_text(double loss) { return std::abs(loss) < 1e6 ? fixed(loss, 3) : plain(loss); }

std::string loss_text(const Estimate& loss) {
  if (loss.n < 1) return "–";
  if (loss.n == 1) return loss_text(loss.mean);
  // No loss is below 0, which the interval of few seeds does not know.
  const double low = loss.mean >= 0 ? std::max(0.0, loss.low) : loss.low;
  return fmt::format("{} [{}, {}]", loss_text(loss.mean), loss_text(low), loss_text(loss.high));
}

std::string depth_text(double layers) { return std::abs(layers) < 1e6 ? fixed(layers, 1) : plain(layers); }

std::string exponent_text(double exponent) { return std::abs(exponent) < 1e6 ? fixed(exponent, 2) : plain(exponent); }

std::string depth_text(const Estimate& layers) {
  if (layers.n < 2) return layers.n < 1 ? "–" : depth_text(layers.mean);
  return fmt::format("{} [{}, {}]", depth_text(layers.mean), depth_text(layers.low), depth_text(layers.high));
}

std::string plain(const Estimate& value, int digits) {
  if (value.n < 1) return "–";
  if (value.n == 1) return plain(value.mean, digits);
  return fmt::format("{} [{}, {}]", plain(value.mean, digits), plain(value.low, digits), plain(value.high, digits));
}

std::string counted(long long number, const char* one, const char* many) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3 + (number < 0);) digits.insert(at -= 3, ",");
  return fmt::format("{} {}", digits, number == 1 ? one : many);
}

}  // namespace norma::draw
