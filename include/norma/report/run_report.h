// The page of one run: how it ended, its curves and what else was recorded.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "norma/lab/sweep_outcome.h"
#include "norma/train/result.h"

namespace norma {

struct RunCurves {
  LossCurve training, held_out;
};

// Anything else that was recorded at steps, of the first member.
struct RunMetric {
  std::string name, unit;
  bool log = false;
  std::vector<std::int64_t> step;
  std::vector<double> value;
};

struct RunReport {
  std::string name = {};                                // of the directory
  std::string command = {}, config = {}, created = {};  // empty: left out
  RunResult result = {};
  std::string scheme_title = {};        // empty: the name of the scheme
  std::vector<RunCurves> members = {};  // as many as the result has
  std::vector<RunMetric> metrics = {};
  std::vector<std::string> findings = {};  // plain sentences, the most important first
  std::string unit = {};                   // of losses; empty: nats
  std::string counted = "token";           // what a step has so many of
  std::string samples = {};                // a PNG of what the model makes; empty: left out
  std::string json = {};                   // result.json; what the page gives back
};

std::string make_run_report(const RunReport& run);
void write_run_report(const std::filesystem::path& path, const RunReport& run);  // whole or not at all

}  // namespace norma
