// Whether a directory holds the run that is asked for, and that its data are still the same.
#pragma once

#include "norma/store/run_directory.h"
#include "norma/train/config.h"
#include "norma/train/data_record.h"

namespace norma {

// Refuses a directory that holds a run of another configuration.
void check_same_run(const RunView& run, const RunConfig& wanted);

// A run that has ended needs its data no more, so what they resolved is taken from it.
RunConfig resolved_as(const RunView& run, RunConfig wanted);

DataRecord stored_record(const RunView& run);
void require_same_data(const RunView& run, const DataRecord& now);

}  // namespace norma
