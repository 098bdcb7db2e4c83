// What trained models lose on held-out data that no choice has seen, batch by batch.
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

// [run][batch]; batches without a target are left out. `stopping` is asked before each run; empty rows then.
LossTable losses_by_batch(const std::vector<FinalRun>& runs, const std::shared_ptr<const Source>& source, int threads,
                          const std::function<bool()>& stopping);

}  // namespace norma
