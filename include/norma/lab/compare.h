// Runs beside each other: what they came to, in what their configurations differ, and which differences of loss the
// seeds support.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "norma/core/share.h"
#include "norma/lab/estimate.h"
#include "norma/lab/run_history.h"

namespace norma {

// A run, or one member of it.
struct ComparedRun {
  std::string name;  // its directory below the one that all are in, and its member where there are several
  std::string path;
  std::size_t group = 0;
  std::string scheme = {}, task = {}, unit = {};  // unit: of its loss; empty: nats
  std::int64_t layers = 0, width = 0, parameters = 0, steps = 0, seed = 0, data_seed = 0;
  double lr = 0, loss = 0;  // loss: held out at the end, or of training where nothing is; NaN: diverged, or not ended
  bool held_out = false;
  std::optional<RightShare> accuracy = {};  // of classifiers, held out
  std::string verdict = {};                 // "not finished" before the end
  LossCurve curve = {}, evaluations = {};
};

// Runs that differ in nothing but their seeds.
struct RunGroup {
  std::string name;  // in what it differs from the others, or its run
  std::vector<std::size_t> runs = {};
  Estimate loss = {};                     // over those that have one; n = 0: none
  std::optional<Estimate> accuracy = {};  // of classifiers, over seeds and held-out records
  int diverged = 0;
};

struct ConfigDifference {
  std::string key;
  std::vector<std::string> values;  // one for each group
};

// How much more `a` loses than `b`, over the seeds that both have.
struct GroupDifference {
  std::size_t a = 0, b = 0;  // groups
  Estimate difference = {};  // n seeds; n = 0: none in common, or nothing to compare
  double p = 1;              // adjusted for the number of pairs
  bool supported = false;
  std::string words = {};
};

struct RunComparison {
  std::vector<ComparedRun> runs = {};
  std::vector<RunGroup> groups = {};
  std::vector<ConfigDifference> differences = {};
  std::vector<GroupDifference> pairs = {};
  std::vector<std::string> notes = {};
};

// Pairs are called different with a chance of at most `alpha` over all of them when they are not (Bonferroni).
RunComparison compare_runs(const std::vector<RunHistory>& runs, double alpha = 0.05);
std::string write_comparison(const RunComparison& comparison);  // as JSON

}  // namespace norma
