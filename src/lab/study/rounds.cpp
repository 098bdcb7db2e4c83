#include "lab/study/rounds.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lab/sweep/files.h"
#include "norma/core/error.h"
#include "norma/store/atomic_file.h"

namespace norma {
namespace {

using RoundJson = nlohmann::json;

Stage stage_of(const std::string& name) {
  for (const Stage stage : {Stage::race, Stage::final, Stage::longest}) {
    if (name_of(stage) == name) return stage;
  }
  fail("there is no stage '{}'", name);
}

RoundJson json_of(const Round& round, const std::vector<std::string>& schemes) {
  RoundJson entries = RoundJson::array();
  for (const RoundEntry& entry : round.entries)
    entries.push_back(
        {{"scheme", schemes[entry.scheme]}, {"lr", entry.lr}, {"warmup", entry.warmup}, {"seeds", entry.seeds}});
  return {
      {"stage", name_of(round.stage)},         {"steps", round.steps}, {"entries", entries}, {"why", round.why},
      {"tokens_left", round.tokens_left},      {"ended", round.ended}, {"cut", round.cut},   {"seconds", round.seconds},
      {"tokens_trained", round.tokens_trained}};
}

Round round_of(const RoundJson& saved, const std::vector<std::string>& schemes) {
  Round round{.stage = stage_of(saved.at("stage").get<std::string>()),
              .steps = saved.at("steps"),
              .why = saved.at("why"),
              .tokens_left = saved.at("tokens_left"),
              .ended = saved.at("ended"),
              .cut = saved.value("cut", false),
              .seconds = saved.at("seconds"),
              .tokens_trained = saved.at("tokens_trained")};
  for (const RoundJson& entry : saved.at("entries")) {
    const auto scheme = std::find(schemes.begin(), schemes.end(), entry.at("scheme").get<std::string>());
    if (scheme == schemes.end()) fail("the scheme '{}' is not one of this study", entry.at("scheme").dump());
    round.entries.push_back({static_cast<std::size_t>(scheme - schemes.begin()), entry.at("lr"), entry.at("warmup"),
                             entry.at("seeds").get<std::vector<std::int64_t>>()});
  }
  return round;
}

}  // namespace

std::int64_t Round::runs() const {
  std::int64_t count = 0;
  for (const RoundEntry& entry : entries) count += std::ssize(entry.seeds);
  return count;
}

std::string Round::folder() const { return fmt::format("{}-{}", name_of(stage), steps); }

StudyLog read_rounds(const Folder& study, const std::string& budget, const std::vector<std::string>& schemes) {
  StudyLog log{.budget = budget};
  if (study.kind(kRoundsFile) == PathKind::nothing) return log;
  const std::filesystem::path path = study / kRoundsFile;
  const RoundJson all = without_checksum(study.read(kRoundsFile), path);
  try {
    if (all.at("budget") != budget || all.at("schemes") != schemes) return log;
    log.before = {all.at("seconds_before"), all.at("training_seconds_before"), all.at("tokens_before")};
    for (const RoundJson& one : all.at("rounds")) log.rounds.push_back(round_of(one, schemes));
  } catch (const std::exception& problem) {
    fail("'{}' is damaged ({}); remove it to decide anew", path.string(), problem.what());
  }
  return log;
}

void write_rounds(const Folder& study, const StudyLog& log, const std::vector<std::string>& schemes) {
  RoundJson rounds = RoundJson::array();
  for (const Round& round : log.rounds) rounds.push_back(json_of(round, schemes));
  write_atomically(study, kRoundsFile,
                   with_checksum({{"budget", log.budget},
                                  {"schemes", schemes},
                                  {"seconds_before", log.before.seconds},
                                  {"training_seconds_before", log.before.training_seconds},
                                  {"tokens_before", log.before.tokens_trained},
                                  {"rounds", rounds}}));
}

}  // namespace norma
