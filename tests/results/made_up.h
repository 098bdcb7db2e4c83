// Results in which nothing is left out and no two values are the same by chance.
#pragma once

#include "norma/lab/results.h"
#include "norma/train/result.h"

namespace norma::test {

Results made_up_results(ResultsKind kind);
RunResult made_up_run();  // of a sweep: one member that diverged, one that was stopped, one that is stable

}  // namespace norma::test
