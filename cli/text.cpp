#include "cli/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "cli/table.h"
#include "cli/terminal.h"

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

// "0.8310 [0.7921, 0.8642]"
std::string accuracy_text(const std::map<std::string, double>& scores) {
  const auto found = scores.find("accuracy"), low = scores.find("accuracy_low"), high = scores.find("accuracy_high");
  if (found == scores.end() || !std::isfinite(found->second)) return "-";
  if (low == scores.end() || high == scores.end()) return fmt::format("{:.4f}", found->second);
  return fmt::format("{:.4f} [{:.4f}, {:.4f}]", found->second, low->second, high->second);
}

// How many records an accuracy rests on, and how to have all of them.
std::string accuracy_note(const RunResult& result) {
  for (const MemberResult& member : result.members) {
    const auto records = member.scores.find("records"), all = member.scores.find("records_held_out");
    if (records == member.scores.end()) continue;
    const bool some = all != member.scores.end() && all->second > records->second;
    return fmt::format("accuracy on {:.0f}{} held-out records, with its 95 % interval over records, not seeds{}\n",
                       records->second, some ? fmt::format(" of {:.0f}", all->second) : "",
                       some ? "; data.evaluation_batches=0 takes all of them" : "");
  }
  return "";
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
  const bool judged = std::ranges::any_of(result.members, [](const MemberResult& one) {
    return one.scores.contains("accuracy") && one.scores.contains("records");
  });
  Table table;
  for (const char* heading : {"member", "seed", "lr", "warmup", "loss", "held out"}) table.column({.title = heading});
  if (judged) table.column({.title = "accuracy"});
  table.column({.title = "verdict", .left = true});
  for (const MemberResult& member : result.members) {
    std::vector<std::string> cells = {fmt::format("{}", member.member),
                                      fmt::format("{}", member.seed),
                                      number_or_dash(member.lr, "{:.2e}"),
                                      fmt::format("{}", member.warmup),
                                      number_or_dash(member.final_loss, "{:.4f}"),
                                      number_or_dash(member.evaluation_loss.value_or(std::nan("")), "{:.4f}")};
    if (judged) cells.push_back(accuracy_text(member.scores));
    cells.push_back(verdict_of(member.outcome, member.facts));
    table.add(std::move(cells));
  }
  text += table.folded(output_columns());
  return text + accuracy_note(result);
}

}  // namespace norma::cli
