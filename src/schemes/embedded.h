// The texts of schemes/*.toml; defined in a source that the build writes.
#pragma once

#include <span>
#include <string_view>

namespace norma {

struct EmbeddedScheme {
  std::string_view name;
  std::string_view text;
};

std::span<const EmbeddedScheme> embedded_schemes();

}  // namespace norma
