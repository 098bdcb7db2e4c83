// The keys that every results.json has, read without building the rest in memory.
#pragma once

#include <string>
#include <string_view>

namespace norma {

struct ResultsHeader {
  std::string norma, kind, created;
};

// Reads all of `json`: throws Error when it is not one JSON object in UTF-8, or when one of the keys is missing or no
// text.
ResultsHeader read_results_header(std::string_view json);

}  // namespace norma
