// What the page of a run shows, from what the run recorded.
#pragma once

#include "norma/lab/diagnose.h"
#include "norma/report/run_report.h"

namespace norma::cli {

// Of a run that has ended.
RunReport page_of(const RunHistory& history, const std::vector<Diagnosis>& found);

}  // namespace norma::cli
