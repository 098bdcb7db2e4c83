// The results of a study on a terminal.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "norma/lab/study.h"

namespace norma {
namespace {

using nlohmann::ordered_json;

}  // namespace

std::string study_table(std::string_view results_json) {
  const ordered_json all = ordered_json::parse(results_json);
  std::map<std::string, ordered_json> tuned, depth;
  if (all.contains("tuned")) {
    for (const ordered_json& one : all["tuned"]) tuned[one["scheme"].get<std::string>()] = one;
  }
  if (all.contains("depth_use")) {
    for (const ordered_json& one : all["depth_use"]) depth[one["scheme"].get<std::string>()] = one;
  }
  const auto number = [](const ordered_json& value, const char* format) {
    return value.is_number() ? fmt::format(fmt::runtime(format), value.get<double>()) : std::string("-");
  };
  std::string text = fmt::format("{:>4}  {:<16} {:<15} {:>9} {:>9} {:>7} {:>11}\n", "rank", "scheme", "verdict", "loss",
                                 "lr", "warmup", "depth used");
  for (const ordered_json& verdict : all["verdicts"]) {
    const std::string scheme = verdict["scheme"];
    const ordered_json& best = tuned.contains(scheme) ? tuned[scheme] : ordered_json();
    const ordered_json loss = best.is_object() && best.contains("loss") ? best["loss"]["mean"] : ordered_json();
    const std::string used = depth.contains(scheme) ? number(depth[scheme]["effective_depth"]["mean"], "{:.1f}") +
                                                          " of " + std::to_string(depth[scheme]["layers"].get<int>())
                                                    : "-";
    const bool trained = best.is_object() && best.contains("lr") && best["lr"].is_number();
    text += fmt::format("{:>4}  {:<16} {:<15} {:>9} {:>9} {:>7} {:>11}\n", verdict["rank"].get<int>(), scheme,
                        verdict["verdict"].get<std::string>(), number(loss, "{:.3f}"),
                        trained ? number(best["lr"], "{:g}") : "-",
                        trained ? std::to_string(best["warmup"].get<long long>()) : "-", used);
  }
  text += "\n";
  for (const ordered_json& verdict : all["verdicts"]) text += verdict["words"].get<std::string>() + "\n";
  if (all.contains("advice"))
    text += fmt::format("\n{} {}\n", all["advice"]["words"].get<std::string>(),
                        all["advice"]["confidence"].get<std::string>());
  return text;
}

}  // namespace norma
