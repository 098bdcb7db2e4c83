#include "cli/text.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

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

std::string number_or_dash(double value, const char* format) {
  return std::isfinite(value) ? fmt::format(fmt::runtime(format), value) : "-";
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

std::string outcome_table(const RunResult& result) {
  std::string text;
  if (result.optimum) text += fmt::format("best reachable loss {:.4f}\n", *result.optimum);
  text += fmt::format("{:>6}  {:>6}  {:>9}  {:>7}  {:>9}  {:>9}  {}\n", "member", "seed", "lr", "warmup", "loss",
                      "held out", "verdict");
  for (const MemberResult& member : result.members) {
    text += fmt::format("{:>6}  {:>6}  {:>9}  {:>7}  {:>9}  {:>9}  {}\n", member.member, member.seed,
                        number_or_dash(member.lr, "{:.2e}"), member.warmup, number_or_dash(member.final_loss, "{:.4f}"),
                        number_or_dash(member.evaluation_loss.value_or(std::nan("")), "{:.4f}"),
                        verdict_of(member.outcome, member.facts));
  }
  return text;
}

}  // namespace norma::cli
