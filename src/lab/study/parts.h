// Parts of a study that need nothing of its course.
#pragma once

#include <vector>

#include "lab/study/play.h"
#include "lab/study/verdict.h"
#include "norma/lab/study.h"
#include "norma/lab/sweep_results.h"

namespace norma {

// Throws Error for what cannot be studied, before anything is computed.
void check_study(const StudyConfig& config);

// What the runs that ended say about each scheme, by rate and warmup. Rates that are not shared by all schemes count as
// extra.
void gather_cells(std::vector<SchemeEvidence>& evidence, const std::vector<RunOutcome>& outcomes,
                  const std::vector<double>& shared_rates);

// What the rounds after the map add: how training stands, the final comparison, which budget would tell more.
void gather_rounds(std::vector<SchemeEvidence>& evidence, const RoundPlayer& rounds, const StudyConfig& config);

// How gradient, amplification and stream change with depth, if the analysis is one of these.
void gather_laws(std::vector<SchemeEvidence>& evidence, const Analysis& analysis);

// Of a time: what the use of depth may take, a fifth or half a minute where that is at most a third; and what is left
// for networks at init and for training when that and the report are paid for.
double seconds_for_depth_use(const StudyConfig& config);
double seconds_for_training(const StudyConfig& config);

// A network at init costs little, and single ones scatter: the seeds of the runs and the next ones up to eight.
std::vector<std::uint64_t> seeds_at_init(const std::vector<std::int64_t>& seeds);

}  // namespace norma
