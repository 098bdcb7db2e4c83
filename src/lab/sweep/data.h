// data.json of a sweep: what the files of its cells held when they were first read, so that no cell is trained on other
// data than those beside it.
#pragma once

#include <filesystem>
#include <vector>

#include "norma/lab/sweep.h"
#include "norma/store/folder.h"
#include "norma/train/data_record.h"

namespace norma {

// Reads the files that these configurations name, as far as they are there. Throws Error that names the difference when
// one of them is not what it was; otherwise returns all that the sweep knows by now.
DataRecord require_same_data(const std::filesystem::path& sweep, const std::vector<DataConfig>& configs);

void keep_data_record(const Folder& sweep, const DataRecord& record);

}  // namespace norma
