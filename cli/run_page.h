// What the page of a run shows, from what the run recorded.
#pragma once

#include "norma/lab/diagnose.h"
#include "norma/report/run_report.h"

namespace norma::cli {

// Of a run that has ended.
// The picture of the last samples of a denoiser, in its run.
inline constexpr const char* kSamplesName = "samples.png";

RunReport page_of(const RunHistory& history, const std::vector<Diagnosis>& found);

}  // namespace norma::cli
