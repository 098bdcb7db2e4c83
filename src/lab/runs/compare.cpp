#include "norma/lab/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "lab/limits.h"
#include "norma/lab/share.h"
#include "norma/lab/statistics.h"

namespace norma {
namespace {

using ConfigValues = std::map<std::string, std::string>;

// What changes no result, or only which of equal runs it is.
bool is_incidental(const std::string& key) {
  static const std::set<std::string> keys = {
      "train.seed",        "train.data_seed",        "train.threads",          "train.device",        "train.log_every",
      "train.tensorboard", "train.checkpoint_every", "train.keep_checkpoints", "train.evaluate_every"};
  return keys.contains(key) || key.starts_with("members.");
}

ConfigValues values_of_member(const RunHistory& run, const MemberHistory& member) {
  RunConfig config = run.config;
  config.train = member.settings;
  config.members = {};
  ConfigValues values;
  for (const ConfigKey& key : config_keys(config)) {
    if (!is_incidental(key.name)) values[key.name] = key.value;
  }
  return values;
}

// The folder that all of them are in; empty: none, or there is only one.
std::filesystem::path common_folder(const std::vector<RunHistory>& runs) {
  std::filesystem::path common = runs.empty() ? "" : runs.front().path.lexically_normal().parent_path();
  for (const RunHistory& run : runs) {
    const std::filesystem::path path = run.path.lexically_normal();
    while (!common.empty() && common != common.parent_path()) {
      const std::filesystem::path below = path.lexically_relative(common);
      if (!below.empty() && *below.begin() != "..") break;
      common = common.parent_path();
    }
  }
  return runs.size() > 1 ? common : "";
}

ComparedRun compared(const RunHistory& run, const MemberHistory& member, const std::filesystem::path& folder) {
  const ModelConfig& model = run.config.model;
  const std::filesystem::path path = run.path.lexically_normal();
  ComparedRun one{.name = folder.empty() ? run.path.string() : path.lexically_relative(folder).string(),
                  .path = run.path.string(),
                  .scheme = model.scheme.asked(),
                  .task = run.config.data.task,
                  .unit = loss_unit(model),
                  .layers = model.layers,
                  .width = model.width,
                  .parameters = run.result ? run.result->parameters : 0,
                  .steps = member.settings.steps,
                  .seed = member.settings.seed,
                  .data_seed = member.settings.data_seed,
                  .lr = member.settings.lr,
                  .loss = kNaN,
                  .verdict = "not finished",
                  .curve = member.curve(),
                  .evaluations = member.evaluations};
  if (run.members.size() > 1) one.name += fmt::format(" [{}]", member.member);
  if (!member.result) return one;
  one.held_out = member.result->evaluation_loss.has_value();
  const std::map<std::string, double>& scores = member.result->scores;
  if (scores.contains("accuracy") && scores.contains("records") && std::isfinite(scores.at("accuracy")))
    one.accuracy = RightShare{scores.at("accuracy"), member.result->evaluation_records.value_or(scores.at("records"))};
  if (member.result->outcome != Outcome::diverged && member.result->outcome != Outcome::stopped)
    one.loss = member.result->evaluation_loss.value_or(member.result->final_loss);
  one.verdict = verdict_of(member.result->outcome, member.result->facts);
  return one;
}

std::vector<ConfigDifference> differences_of(const std::vector<ConfigValues>& groups) {
  std::set<std::string> keys;
  for (const ConfigValues& values : groups) {
    for (const auto& [key, value] : values) keys.insert(key);
  }
  std::vector<ConfigDifference> differences;
  for (const std::string& key : keys) {
    ConfigDifference difference{.key = key, .values = {}};
    for (const ConfigValues& values : groups) {
      const auto found = values.find(key);
      difference.values.push_back(found == values.end() ? "-" : found->second);
    }
    const auto& all = difference.values;
    if (std::any_of(all.begin(), all.end(), [&](const std::string& value) { return value != all.front(); }))
      differences.push_back(std::move(difference));
  }
  return differences;
}

std::string name_of_group(const RunComparison& comparison, std::size_t group) {
  constexpr std::size_t kMostKeys = 3;
  if (comparison.groups[group].runs.size() == 1) return comparison.runs[comparison.groups[group].runs[0]].name;
  if (comparison.differences.empty() || comparison.differences.size() > kMostKeys)
    return fmt::format("{} and {} more", comparison.runs[comparison.groups[group].runs[0]].name,
                       comparison.groups[group].runs.size() - 1);
  std::string name;
  for (const ConfigDifference& difference : comparison.differences)
    name += fmt::format("{}{}={}", name.empty() ? "" : ", ", difference.key.substr(difference.key.find('.') + 1),
                        difference.values[group]);
  return name;
}

using Seeds = std::pair<std::int64_t, std::int64_t>;  // of weights and of data

std::map<Seeds, double> losses_by_seed(const RunComparison& comparison, std::size_t group) {
  std::map<Seeds, double> losses;
  for (const std::size_t run : comparison.groups[group].runs) {
    const ComparedRun& one = comparison.runs[run];
    if (std::isfinite(one.loss)) losses.emplace(Seeds{one.seed, one.data_seed}, one.loss);
  }
  return losses;
}

// Losses of other data, or of training where the others are held out, say nothing about the model.
std::string why_not_comparable(const RunComparison& comparison, std::size_t a, std::size_t b) {
  for (const ConfigDifference& difference : comparison.differences) {
    if (difference.key.starts_with("data.") && difference.values[a] != difference.values[b])
      return fmt::format("{} differs", difference.key);
  }
  const bool first = comparison.runs[comparison.groups[a].runs[0]].held_out;
  const bool second = comparison.runs[comparison.groups[b].runs[0]].held_out;
  return first == second ? "" : "one was measured on held-out data and the other was not";
}

std::string words_of_pair(const RunComparison& comparison, const GroupDifference& pair) {
  const std::string &a = comparison.groups[pair.a].name, &b = comparison.groups[pair.b].name;
  const Estimate& d = pair.difference;
  if (d.n == 0) return fmt::format("{} and {} have no seed in common: nothing can be said in pairs", a, b);
  const std::string who =
      fmt::format("{} loses {:.4f} {} than {}", a, std::abs(d.mean), d.mean < 0 ? "less" : "more", b);
  if (d.n == 1)
    return fmt::format(
        "{} on the one seed they share; one seed cannot tell a difference from chance: repeat both with "
        "three or more, as with --members.seed=[1,2,3]",
        who);
  const std::string interval = fmt::format("[{:.4f}, {:.4f}] over {} shared seeds", d.mean < 0 ? -d.high : d.low,
                                           d.mean < 0 ? -d.low : d.high, d.n);
  if (pair.supported) return fmt::format("{}: {}", who, interval);
  return fmt::format("{}, which the evidence does not support: the interval {} includes 0", who, interval);
}

GroupDifference difference_of(const RunComparison& comparison, std::size_t a, std::size_t b, double alpha,
                              double pairs) {
  GroupDifference pair{.a = a, .b = b};
  if (const std::string why = why_not_comparable(comparison, a, b); !why.empty()) {
    pair.words = fmt::format("{} and {} cannot be compared by loss: {}", comparison.groups[a].name,
                             comparison.groups[b].name, why);
    return pair;
  }
  const std::map<Seeds, double> first = losses_by_seed(comparison, a), second = losses_by_seed(comparison, b);
  LossTable of_first, of_second;
  for (const auto& [seeds, loss] : first) {
    const auto found = second.find(seeds);
    if (found == second.end()) continue;
    of_first.push_back({loss});
    of_second.push_back({found->second});
  }
  if (!of_first.empty()) {
    const PairedDifference found = compare_pairs({of_first, of_second}, alpha / pairs).at(0);
    pair.difference = found.difference;
    pair.p = std::min(1.0, found.p * pairs);
    pair.supported = found.apart;
  }
  pair.words = words_of_pair(comparison, pair);
  return pair;
}

void add_notes(RunComparison& comparison) {
  for (const RunGroup& group : comparison.groups) {
    if (group.diverged > 0)
      comparison.notes.push_back(fmt::format("{}: {} of {} diverged and {} no loss", group.name, group.diverged,
                                             group.runs.size(), group.diverged == 1 ? "has" : "have"));
  }
  for (const RunGroup& group : comparison.groups) {
    std::map<Seeds, int> times;
    for (const std::size_t run : group.runs) ++times[{comparison.runs[run].seed, comparison.runs[run].data_seed}];
    for (const auto& [seeds, count] : times) {
      if (count > 1)
        comparison.notes.push_back(
            fmt::format("{}: seed {} was run {} times and counts once", group.name, seeds.first, count));
    }
  }
  const bool paired = std::any_of(comparison.pairs.begin(), comparison.pairs.end(),
                                  [](const GroupDifference& pair) { return pair.difference.n > 1; });
  if (paired)
    comparison.notes.push_back(
        "intervals of losses cover seeds at a level of 95 % over all pairs, not which data happened to be held out");
}

}  // namespace

RunComparison compare_runs(const std::vector<RunHistory>& runs, double alpha) {
  RunComparison comparison;
  const std::filesystem::path folder = common_folder(runs);
  std::vector<ConfigValues> groups;
  for (const RunHistory& run : runs) {
    for (const MemberHistory& member : run.members) {
      const ConfigValues values = values_of_member(run, member);
      const auto group = static_cast<std::size_t>(std::find(groups.begin(), groups.end(), values) - groups.begin());
      if (group == groups.size()) {
        groups.push_back(values);
        comparison.groups.push_back({});
      }
      comparison.groups[group].runs.push_back(comparison.runs.size());
      comparison.runs.push_back(compared(run, member, folder));
      comparison.runs.back().group = group;
    }
  }
  comparison.differences = differences_of(groups);
  for (std::size_t group = 0; group < groups.size(); ++group) {
    RunGroup& one = comparison.groups[group];
    one.name = name_of_group(comparison, group);
    for (const std::size_t run : one.runs) one.diverged += comparison.runs[run].verdict.starts_with("diverged") ? 1 : 0;
    std::vector<double> losses;  // a run that is repeated says nothing new: each seed counts once
    for (const auto& [seeds, loss] : losses_by_seed(comparison, group)) losses.push_back(loss);
    if (!losses.empty()) one.loss = estimate_of(losses);
    std::map<Seeds, RightShare> shares;
    for (const std::size_t run : one.runs) {
      const ComparedRun& each = comparison.runs[run];
      if (each.accuracy && std::isfinite(each.loss)) shares.emplace(Seeds{each.seed, each.data_seed}, *each.accuracy);
    }
    std::vector<RightShare> models;
    for (const auto& [seeds, share] : shares) models.push_back(share);
    one.accuracy = mean_share(models);
  }
  const double count = static_cast<double>(groups.size());
  for (std::size_t a = 0; a < groups.size(); ++a) {
    for (std::size_t b = a + 1; b < groups.size(); ++b) {
      if (comparison.groups[a].loss.n > 0 && comparison.groups[b].loss.n > 0)
        comparison.pairs.push_back(difference_of(comparison, a, b, alpha, count * (count - 1) / 2));
    }
  }
  add_notes(comparison);
  return comparison;
}

}  // namespace norma
