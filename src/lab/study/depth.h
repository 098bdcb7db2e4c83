// What the layers of trained models are worth, for every scheme of a study.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <vector>

#include "lab/study/verdict.h"
#include "norma/data/source.h"
#include "norma/lab/results.h"
#include "norma/lab/study.h"
#include "norma/lab/sweep_outcome.h"

namespace norma {

struct DepthSubject {
  std::size_t scheme = 0;
  RunOutcome outcome;
  std::filesystem::path directory;
};

// The first subject of every scheme, then the second ones, and so on: the order in which they are measured.
std::vector<std::size_t> by_turns(const std::vector<DepthSubject>& subjects);

// Side by side, since each has a single member; a scheme's number is a mean over its subjects. Puts it into the
// evidence and adds to `findings`. Deep models take long, the square of their layers: when `seconds` are over, what has
// not been measured is left out, every scheme's first subject last, and a note says so.
void measure_depth_of(const std::vector<DepthSubject>& subjects, const std::shared_ptr<const Source>& source,
                      int threads, std::vector<SchemeEvidence>& evidence, Findings& findings, StudyObserver& observer,
                      const std::atomic<bool>& stop, double seconds);

}  // namespace norma
