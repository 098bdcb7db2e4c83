#include "damage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <random>

namespace norma::faults {
namespace {

namespace fs = std::filesystem;

void write_text(const fs::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
}

void inflict(const fs::path& file, const std::string& how) {
  std::string text = text_of(file);
  std::size_t at = 0;
  unsigned bit = 0;
  if (std::sscanf(how.c_str(), "flip:%zu.%u", &at, &bit) == 2) {
    text.at(at) = static_cast<char>(text.at(at) ^ (1u << bit));
    write_text(file, text);
  } else if (std::sscanf(how.c_str(), "cut:%zu", &at) == 1) {
    write_text(file, text.substr(0, at));
  } else if (how == "grown") {
    write_text(file, text + "x");
  } else if (how == "garbage") {
    write_text(file, std::string(text.size() + 1, 'x'));
  } else {
    fs::remove(file);
    if (how == "folder") fs::create_directory(file);
    if (how == "link") fs::create_symlink("nowhere", file);
  }
}

// Nothing of a run hangs on these (on a rung only until it was decided), or (kept copies of what the command says) only
// on what they mean, so that a blank more or another title may stay.
bool is_incidental(const fs::path& file) {
  const std::string name = file.filename().string();
  return name == ".lock" || name == "environment.json" || name == "config.toml" || name == "scheme.toml" ||
         name == "sweep.toml" || name == "schemes.json" || name.starts_with("events.out.tfevents") ||
         name.ends_with(".norma-tmp") || name.ends_with("-journal") || file.parent_path().filename() == "rungs";
}

// A finished run in a sweep is no longer written; what is read of it must be noticed where it goes, in the results.
bool belongs_to_a_finished_run(const fs::path& file) {
  const fs::path folder = file.parent_path();
  return fs::exists(folder / "DONE") ||
         (folder.filename() == "checkpoints" && fs::exists(folder.parent_path() / "DONE"));
}

// A clear refusal says which file, or which folder is not what it should be.
bool names(const std::string& message, const fs::path& file) {
  const std::string folder = file.parent_path().filename().string() + "'";
  return message.find(file.filename().string()) != std::string::npos || message.find(folder) != std::string::npos;
}

// A refusal must not make things worse: with the file as it was, the command comes to its end.
Outcome after_repair(Bench& bench, const Scenario& scenario, const State& state, const Damage& damage) {
  fs::remove_all(bench.root() / damage.file);
  fs::copy(state.folder / damage.file, bench.root() / damage.file);
  const Exit exit = bench.run(scenario.arguments, std::nullopt);
  if (const auto wrong = wrong_end(exit, false)) return *wrong;
  if (exit.code != 0) return {Verdict::dead_end, "still refused with the file as it was: " + exit.error};
  const Difference difference = compare(scenario.end, snapshot_of(bench.root()));
  if (difference.lost.empty()) return {Verdict::refused, {}};
  return {Verdict::lost, fmt::format("after a refusal: {}", fmt::join(difference.lost, "; "))};
}

// Whether the damage is as it was and nothing else differs.
bool same_but_for(const std::string& name, Snapshot expected, Snapshot harmed, Snapshot end) {
  const auto taken = [&](Snapshot& from) {
    const auto node = from.extract(name);
    return node.empty() ? std::string() : node.mapped();
  };
  taken(expected);
  return taken(harmed) == taken(end) && compare(expected, end).lost.empty();
}

}  // namespace

std::vector<Damage> damages_of(const fs::path& root, int flips, unsigned seed) {
  std::vector<Damage> damages;
  std::vector<std::string> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root))
    if (entry.is_regular_file()) files.push_back(fs::relative(entry.path(), root).string());
  std::sort(files.begin(), files.end());
  std::mt19937 random(seed);
  for (const std::string& file : files) {
    for (const char* how : {"gone", "garbage", "grown", "folder", "link", "cut:0"}) damages.push_back({file, how});
    const std::size_t size = fs::file_size(root / file);
    if (size < 2) continue;
    for (const std::size_t kept : {size / 2, size - 1}) damages.push_back({file, fmt::format("cut:{}", kept)});
    for (int i = 0; i < flips; ++i) damages.push_back({file, fmt::format("flip:{}.{}", random() % size, random() % 8)});
  }
  return damages;
}

Outcome try_damage(Bench& bench, const Scenario& scenario, const State& state, const Damage& damage) {
  bench.clear(state.folder);
  const fs::path file = bench.root() / damage.file;
  inflict(file, damage.how);
  const Snapshot harmed = snapshot_of(bench.root());
  const Exit exit = bench.run(scenario.arguments, std::nullopt);
  if (const auto wrong = wrong_end(exit, false)) return *wrong;
  if (exit.code == 2) {
    if (!names(exit.error, file)) return {Verdict::dead_end, "does not name the file: " + exit.error};
    return after_repair(bench, scenario, state, damage);
  }
  const Snapshot end = snapshot_of(bench.root());
  if (compare(scenario.end, end).lost.empty()) return {Verdict::harmless, {}};
  const bool may_stay = state.ended || is_incidental(file) || belongs_to_a_finished_run(file);
  if (may_stay && same_but_for(damage.file, scenario.end, harmed, end)) return {Verdict::ignored, {}};
  return {Verdict::lost, fmt::format("{}", fmt::join(compare(scenario.end, end).lost, "; "))};
}

}  // namespace norma::faults
