#include "bench/report.h"

#include <fmt/format.h>

#include <algorithm>

namespace norma::bench {

void Report::set_limit(const std::string& name, double value) {
  const std::lock_guard lock(mutex_);
  limits_[name] = value;
}

void Report::add(Result result) {
  const std::lock_guard lock(mutex_);
  results_.push_back(std::move(result));
}

bool Report::empty() const {
  const std::lock_guard lock(mutex_);
  return results_.empty();
}

void Report::add_rate(const std::string& name, double amount, const Timing& timing, const std::string& unit,
                      const std::string& limit, double limit_value) {
  const double rate = amount / timing.best;
  if (limit_value == 0 && !limit.empty()) limit_value = limits_.at(limit);
  add({.name = name,
       .value = rate,
       .unit = unit,
       .limit = limit,
       .limit_value = limit_value,
       .share = limit.empty() ? 0 : rate / limit_value,
       .noise = timing.median / timing.best - 1});
}

void Report::add_value(const std::string& name, double value, const std::string& unit, const std::string& limit,
                       double share) {
  add({.name = name, .value = value, .unit = unit, .limit = limit, .share = share});
}

void Report::attach_peer(const nlohmann::json& peer) {
  for (const nlohmann::json& entry : peer.at("results")) {
    for (Result& result : results_) {
      if (entry.at("name") == result.name && entry.at("unit") == result.unit) result.peer = entry.at("value");
    }
  }
}

nlohmann::json Report::json() const {
  const std::lock_guard lock(mutex_);
  nlohmann::json results = nlohmann::json::array();
  for (const Result& result : results_) {
    nlohmann::json entry = {
        {"name", result.name}, {"value", result.value}, {"unit", result.unit}, {"noise", result.noise}};
    entry["limit"] = result.limit.empty() ? nlohmann::json() : nlohmann::json(result.limit);
    entry["share"] = result.limit.empty() ? nlohmann::json() : nlohmann::json(result.share);
    if (result.limit_value > 0) entry["limit_value"] = result.limit_value;
    if (result.peer > 0) {
      entry["peer"] = result.peer;
      entry["times_peer"] = result.value / result.peer;
    }
    results.push_back(std::move(entry));
  }
  return {{"limits", limits_}, {"results", results}};
}

std::string Report::table() const {
  const std::lock_guard lock(mutex_);
  std::size_t width = 4;
  for (const Result& result : results_) width = std::max(width, result.name.size());
  std::string text = "limits of this machine, measured in this run\n";
  for (const auto& [name, value] : limits_) text += fmt::format("  {:<{}} {:>10.1f}\n", name, width, value);
  text += fmt::format("\n  {:<{}} {:>10} {:<10} {:>7}  {:<16} {:>7} {:>7}\n", "name", width, "value", "unit", "share",
                      "of", "noise", "x peer");
  for (const Result& result : results_) {
    const std::string share = result.limit.empty() ? "" : fmt::format("{:.0f} %", 100 * result.share);
    const std::string peer = result.peer > 0 ? fmt::format("{:.2f}", result.value / result.peer) : "";
    text += fmt::format("  {:<{}} {:>10.4g} {:<10} {:>7}  {:<16} {:>5.0f} % {:>7}\n", result.name, width, result.value,
                        result.unit, share, result.limit, 100 * result.noise, peer);
  }
  return text;
}

}  // namespace norma::bench
