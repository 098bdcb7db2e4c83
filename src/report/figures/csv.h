// Tables as CSV (RFC 4180).
#pragma once

#include <string>

#include "norma/report/figure.h"

namespace norma {

// Texts that a spreadsheet would take for a formula get an apostrophe.
std::string csv_text(const FigureTable& table);

}  // namespace norma
