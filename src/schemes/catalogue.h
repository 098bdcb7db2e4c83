// The catalogue from inside: its texts, in a source that the build writes, and its schemes as they are shared.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "norma/schemes/scheme.h"

namespace norma {

struct EmbeddedScheme {
  std::string_view name;
  std::string_view kind;  // of the branch that it is for; empty: any
  std::string_view text;
};

std::span<const EmbeddedScheme> embedded_schemes();

std::shared_ptr<const Scheme> catalogued(std::string_view name);  // null: there is none

}  // namespace norma
