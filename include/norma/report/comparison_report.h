// The page of runs beside each other.
#pragma once

#include <filesystem>
#include <string>

#include "norma/lab/compare.h"

namespace norma {

struct ComparisonReport {
  RunComparison comparison;
  std::string command = {}, created = {};  // empty: left out
};

std::string make_comparison_report(const ComparisonReport& report);
void write_comparison_report(const std::filesystem::path& path, const ComparisonReport& report);  // whole or not at all

}  // namespace norma
