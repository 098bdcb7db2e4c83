// The results of a study on a terminal.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "norma/lab/study.h"

namespace norma {
namespace {

using nlohmann::ordered_json;

std::map<std::string, ordered_json> by_scheme(const ordered_json& all, const char* key) {
  std::map<std::string, ordered_json> found;
  if (!all.contains(key)) return found;
  for (const ordered_json& one : all[key]) found[one["scheme"].get<std::string>()] = one;
  return found;
}

std::string number(const ordered_json& value, const char* format) {
  return value.is_number() ? fmt::format(fmt::runtime(format), value.get<double>()) : std::string("-");
}

// "1.958 to 1.967"; empty without seeds to tell.
std::string interval(const ordered_json& estimate) {
  if (!estimate.is_object() || estimate["n"].get<int>() < 2 || !estimate["low"].is_number()) return "-";
  return fmt::format("{:.3f} to {:.3f}", estimate["low"].get<double>(), estimate["high"].get<double>());
}

// One line per scheme, columns as wide as their widest cell.
std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool words = i == 1 || i == 2;
      text += words ? fmt::format("  {:<{}}", row[i], widths[i]) : fmt::format("  {:>{}}", row[i], widths[i]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += "\n";
  }
  return text;
}

std::string legend(const ordered_json& all) {
  std::string text = "loss: held out, nats per token, mean and 95 % interval";
  const ordered_json& task = all.contains("task") ? all["task"] : ordered_json();
  if (task.is_object() && task.contains("unigram") && task["unigram"].is_number())
    text += fmt::format("; guessing by frequency loses {:.3f}", task["unigram"].get<double>());
  if (task.is_object() && task.contains("optimum") && task["optimum"].is_number())
    text += fmt::format(", the optimum is {:.3f}", task["optimum"].get<double>());
  return text +
         "\nstable: trains in at least half of the tried rates and warmups; narrow: in fewer; needs warmup: does not "
         "train, or clearly worse, without\n";
}

// "map: 128 runs of 100 steps; race: 64 runs of 200 steps (...)".
std::string course_text(const ordered_json& all) {
  if (!all.contains("course")) return {};
  std::vector<std::string> rounds;
  for (const ordered_json& round : all["course"]["rounds"])
    rounds.push_back(fmt::format("{}, {} runs of {} steps", round["stage"].get<std::string>(),
                                 round["runs"].get<long long>(), round["steps"].get<long long>()));
  return fmt::format("course: {}\n", fmt::join(rounds, "; "));
}

}  // namespace

std::string study_table(std::string_view results_json) {
  const ordered_json all = ordered_json::parse(results_json);
  const std::map<std::string, ordered_json> tuned = by_scheme(all, "tuned"), depth = by_scheme(all, "depth_use");
  std::vector<std::vector<std::string>> rows = {
      {"rank", "scheme", "verdict", "loss", "interval", "lr", "warmup", "depth used"}};
  for (const ordered_json& verdict : all["verdicts"]) {
    const std::string scheme = verdict["scheme"];
    const ordered_json& best = tuned.contains(scheme) ? tuned.at(scheme) : ordered_json();
    const bool trained = best.is_object() && best.contains("lr") && best["lr"].is_number();
    const ordered_json& loss = best.is_object() && best.contains("loss") ? best["loss"] : ordered_json();
    const std::string used = depth.contains(scheme) ? number(depth.at(scheme)["effective_depth"]["mean"], "{:.1f}") +
                                                          " of " + std::to_string(depth.at(scheme)["layers"].get<int>())
                                                    : "-";
    rows.push_back({std::to_string(verdict["rank"].get<int>()), scheme, verdict["verdict"].get<std::string>(),
                    loss.is_object() ? number(loss["mean"], "{:.3f}") : "-", interval(loss),
                    trained ? number(best["lr"], "{:g}") : "-",
                    trained ? std::to_string(best["warmup"].get<long long>()) : "-", used});
  }
  std::string text = aligned(rows);
  if (!tuned.empty()) text += legend(all) + course_text(all);
  text += "\n";
  for (const ordered_json& verdict : all["verdicts"]) text += verdict["words"].get<std::string>() + "\n";
  if (all.contains("advice")) {
    const ordered_json& advice = all["advice"];
    text += fmt::format("\n{} {}\n", advice["words"].get<std::string>(), advice["confidence"].get<std::string>());
    text += fmt::format("Not tested: {}.\n", fmt::join(advice["not_tested"].get<std::vector<std::string>>(), "; "));
  }
  return text;
}

}  // namespace norma
