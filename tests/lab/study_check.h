// What tests of studies share: one that nobody watches.
#pragma once

#include <atomic>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "norma/lab/study.h"

namespace norma::test {

inline nlohmann::json play_study(const StudyConfig& config, const std::filesystem::path& directory) {
  StudyObserver observer;
  const std::atomic<bool> stop{false};
  return nlohmann::json::parse(run_study({.config = config, .directory = directory}, observer, stop).results_json);
}

}  // namespace norma::test
