// Settings of one task, [data.settings], and draws that several tasks need.
#pragma once

#include "data/draws.h"
#include "norma/data/config.h"

namespace norma {

// What the configuration gives, or `standard`. Throws Error outside [least, most].
double number_setting(const DataConfig& config, const char* name, double standard, double least, double most);
std::int64_t whole_setting(const DataConfig& config, const char* name, double standard, double least, double most);

double normal_draw(Draws& draws);

}  // namespace norma
