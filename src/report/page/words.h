// Sentences of reports. Each says no more than the intervals allow, and a number has one name and one form everywhere.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "norma/lab/results.h"
#include "report/figures/cast.h"

namespace norma {

// The first sentence and the rest.
std::pair<std::string, std::string> first_sentence(std::string_view text);

std::string scheme_sentence(const Results& results, const std::string& scheme);
std::string stability_sentence(const Results& results, const Cast& cast);
std::string comparison_sentence(const Results& results, const Cast& cast);
// Of classifiers, where the share of right answers puts another scheme first than the loss does; otherwise empty.
std::string accuracy_sentence(const Results& results, const Cast& cast);
std::string depth_sentence(const Results& results, const Cast& cast);
// How the quantity of an analysis changes with depth, by its exponents.
std::string law_sentence(const Analysis& analysis, const Cast& cast);

std::string date_text(const std::string& created);  // "16 November 2026" of 2026-11-16T...
std::string duration_words(double seconds);         // "2.5 min"

}  // namespace norma
