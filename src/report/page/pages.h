// Articles by kind of results.
#pragma once

#include <string>

#include "norma/lab/results.h"
#include "report/figures/cast.h"
#include "report/page/html.h"

namespace norma {

struct PageParts {
  const Results& results;
  const Cast& cast;
  const std::vector<Figure>& figures;

  const Figure* find(std::string_view id) const;
  // Empty where there is no such figure.
  std::string figure(std::string_view id, int number) const;
  std::string folded_figures(std::string_view summary, const std::vector<std::string>& ids) const;
};

std::string study_html(const PageParts& parts);
std::string sweep_html(const PageParts& parts);
std::string inspect_html(const PageParts& parts);

// What several of them have.
std::string head_html(std::string_view kicker, std::string_view title, std::string_view standfirst);
std::string schemes_html(const PageParts& parts);  // one sentence each, the rest folded
std::string init_html(const PageParts& parts, int number, std::string_view said = "");
std::string method_html(const Results& results);
std::string facts_of(const Results& results, const Cast& cast);  // "8 schemes · 148 runs · 3 min · 16 November 2026"

}  // namespace norma
