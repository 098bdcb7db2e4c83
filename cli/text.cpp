#include "cli/text.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "norma/core/error.h"
#include "norma/core/json_depth.h"

namespace norma::cli {
namespace {

std::string scaled(double number, double base, const std::array<const char*, 5>& units) {
  std::size_t unit = 0;
  while (std::abs(number) >= base && unit + 1 < units.size()) {
    number /= base;
    ++unit;
  }
  if (unit == 0 && number == std::floor(number)) return fmt::format("{:.0f}{}", number, units[unit]);
  return fmt::format("{:.3g}{}", number, units[unit]);
}

std::string number_or_dash(const nlohmann::json& value, const char* format) {
  return value.is_number() ? fmt::format(fmt::runtime(format), value.get<double>()) : "-";
}

}  // namespace

std::string with_units(double number) { return scaled(number, 1000, {"", "k", "M", "G", "T"}); }
std::string bytes_text(double bytes) { return scaled(bytes, 1024, {" B", " KiB", " MiB", " GiB", " TiB"}); }

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds)) return "?";
  const auto whole = static_cast<long long>(std::llround(seconds));
  const long long hours = whole / 3600, minutes = whole / 60 % 60;
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60)
                   : fmt::format("{}:{:02}", minutes, whole % 60);
}

std::string outcome_table(std::string_view result_json) try {
  if (!is_shallow_json(result_json)) fail("result.json is damaged: it is nested too deeply");
  const nlohmann::json result = nlohmann::json::parse(result_json);
  std::string text;
  if (result.at("optimum").is_number())
    text += fmt::format("best reachable loss {:.4f}\n", result.at("optimum").get<double>());
  text += fmt::format("{:>6}  {:>6}  {:>9}  {:>7}  {:>9}  {:>9}  {}\n", "member", "seed", "lr", "warmup", "loss",
                      "held out", "verdict");
  for (const nlohmann::json& member : result.at("members")) {
    text +=
        fmt::format("{:>6}  {:>6}  {:>9}  {:>7}  {:>9}  {:>9}  {}\n", member.at("member").get<int>(),
                    member.at("seed").get<long long>(), number_or_dash(member.at("lr"), "{:.2e}"),
                    member.at("warmup").get<long long>(), number_or_dash(member.at("final_loss"), "{:.4f}"),
                    number_or_dash(member.at("evaluation_loss"), "{:.4f}"), member.at("verdict").get<std::string>());
  }
  return text;
} catch (const nlohmann::json::exception& problem) {
  fail("result.json is damaged: {}", problem.what());
}

}  // namespace norma::cli
