// One scheme explained at a given depth and width: what there is to say, and how it is said.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "norma/lab/explain.h"
#include "norma/schemes/diagram.h"
#include "norma/schemes/library.h"

namespace norma::cli {

struct SchemesOptions {
  std::string name;
  std::string norm;  // empty: that of the family's study
  std::int64_t layer = 0;
  std::string svg;
  ExplainOptions about{.scheme = "pre"};  // of the name and the norm, once they are known
  SchemeLibrary library = SchemeLibrary::of_environment();
  bool json = false;
};

std::string_view name_of(LearnedSpec::Per per);  // sublayer, layer, stack

// The formula that says most: the whole layer, every sublayer, or the attention sublayer.
std::string headline(const Scheme& scheme);
// Name, title, source and headline.
nlohmann::json summary(const Scheme& scheme);
// Where a scheme comes from, if it is not norma's own.
std::string note_on(const SchemeEntry& entry);

void print_json(const SchemesOptions& options, const SchemeEntry& entry, const Explanation& said);
void print_text(const SchemesOptions& options, const SchemeEntry& entry, const Explanation& said,
                const DiagramOptions& drawing);

}  // namespace norma::cli
