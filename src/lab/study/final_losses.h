// What trained models lose and answer on held-out data that no choice has seen.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

#include "norma/data/source.h"
#include "norma/lab/statistics.h"

namespace norma {

struct FinalRun {
  std::filesystem::path directory;
  double step = 0, steps = 1;
};

// By run. Batches without a target are left out.
struct FinalScores {
  // By batch. A classifier that is judged by a single batch, such as one graph, has them by answer, so that held-out
  // sampling is known there too.
  LossTable losses;
  LossTable right;  // of classifiers by answer, 0 or 1: an image, a node, one of many graphs; empty otherwise
};

// `stopping` is asked before each run; empty rows then.
FinalScores final_scores(const std::vector<FinalRun>& runs, const std::shared_ptr<const Source>& source, int threads,
                         const std::function<bool()>& stopping);

}  // namespace norma
