// One line of metrics.jsonl, printed and parsed.
#pragma once

#include <string>
#include <string_view>

#include "norma/store/metrics.h"

namespace norma {

std::string print_metrics_line(std::int64_t step, std::span<const Metric> metrics);  // with the newline

// Throws Error with the column. Objects, null and arrays of anything but numbers are not accepted.
MetricRecord parse_metrics_line(std::string_view line);  // without the newline

}  // namespace norma
