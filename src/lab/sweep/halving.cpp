#include "lab/sweep/halving.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "lab/limits.h"
#include "lab/sweep/files.h"
#include "norma/core/error.h"
#include "norma/store/atomic_file.h"
#include "norma/train/member_checkpoint.h"

namespace norma {
namespace {

using json = nlohmann::json;

// What is the same for all seeds of a setting.
std::string setting_of(const SweepCell& cell) {
  std::string text;
  for (const auto& [key, value] : cell.axes) {
    if (key != "train.seed" && key != "train.data_seed") text += key + "=" + value + "\n";
  }
  return text;
}

}  // namespace

std::vector<std::int64_t> rung_steps(const std::optional<HalvingConfig>& halving, std::int64_t steps) {
  std::vector<std::int64_t> rungs;
  if (halving) {
    for (std::int64_t step = halving->min_steps; step < steps; step *= halving->eta) {
      rungs.push_back(step);
      if (step > steps / halving->eta) break;
    }
  }
  rungs.push_back(steps);
  return rungs;
}

double rung_score(const SafetensorsFile& checkpoint, int member) {
  const double median = median_loss(checkpoint, member);
  return std::isfinite(median) ? median : kInfinity;
}

std::string rung_name(const std::string& group, std::int64_t step) { return fmt::format("{}-{}.json", group, step); }

RungScores read_scores(const Folder& rungs, const std::string& name) {
  RungScores scores;
  if (rungs.kind(name) == PathKind::nothing) return scores;
  const json all = without_checksum(rungs.read(name), rungs / name);
  try {
    for (const auto& [id, entry] : all.at("members").items()) {
      const json& score = entry.at("score");
      scores[id] = {score.is_number() ? score.get<double>() : kInfinity, entry.at("result").dump(2)};
    }
  } catch (const json::exception&) {
    fail("'{}' is damaged; remove it and the unfinished runs to train them again", (rungs / name).string());
  }
  return scores;
}

void add_scores(const Folder& rungs, const std::string& name, const RungScores& scores) {
  RungScores all = read_scores(rungs, name);
  for (const auto& [id, entry] : scores) all[id] = entry;
  json members = json::object();
  for (const auto& [id, entry] : all)
    members[id] = {{"score", std::isfinite(entry.score) ? json(entry.score) : json()},
                   {"result", json::parse(entry.result)}};
  write_atomically(rungs, name, with_checksum({{"members", members}}));
}

std::vector<std::string> hopeless(const std::vector<const SweepCell*>& cells, const RungScores& scores,
                                  const std::set<std::string>& out, std::int64_t eta) {
  struct Setting {
    std::vector<std::string> ids;
    double sum = 0, seeds = 0;
    bool takes_part = false;
  };
  std::vector<Setting> settings;
  std::map<std::string, std::size_t> place;
  for (const SweepCell* cell : cells) {
    const auto [at, fresh] = place.emplace(setting_of(*cell), settings.size());
    if (fresh) settings.emplace_back();
    Setting& setting = settings[at->second];
    const auto found = scores.find(cell->id);
    setting.sum += found == scores.end() ? kInfinity : found->second.score;
    ++setting.seeds;
    setting.takes_part = setting.takes_part || !out.contains(cell->id);
    if (found != scores.end()) setting.ids.push_back(cell->id);
  }
  std::erase_if(settings, [](const Setting& setting) { return !setting.takes_part; });
  std::stable_sort(settings.begin(), settings.end(),
                   [](const Setting& a, const Setting& b) { return a.sum / a.seeds < b.sum / b.seeds; });
  const std::size_t kept = (settings.size() + static_cast<std::size_t>(eta) - 1) / static_cast<std::size_t>(eta);
  std::vector<std::string> ids;
  for (std::size_t i = kept; i < settings.size(); ++i)
    ids.insert(ids.end(), settings[i].ids.begin(), settings[i].ids.end());
  return ids;
}

}  // namespace norma
