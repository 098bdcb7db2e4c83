// Further networks for the schemes whose law the first ones leave open.
#pragma once

#include <vector>

#include "lab/analyses/collector.h"
#include "norma/lab/inspect.h"
#include "norma/lab/subject.h"

namespace norma {

// What one model showed.
struct ModelReadings {
  Subject subject;
  std::vector<std::vector<Reading>> by_instrument;  // those that have been measured
};

// Models stand side by side as far as memory goes, since building them takes one thread. The largest analysis keeps the
// activations of four copies of each member, in double precision.
int models_at_once(const std::vector<ModelConfig>& models, std::size_t seeds, int threads);

enum class Settled { as_far_as_allowed, out_of_time };

// As many networks again for the schemes whose law their scatter leaves open.
Settled settle_law(const InspectOptions& options, const std::vector<Instrument>& used,
                   const std::vector<ModelConfig>& models, std::vector<ModelReadings>& readings, int threads,
                   const Progress& progress);

}  // namespace norma
