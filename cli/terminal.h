// How wide what is read may be, and texts laid out in that width.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace norma::cli {

// COLUMNS where it is set, otherwise the width of the terminal that standard output is; none where neither says so, as
// in a pipe: then nothing is folded.
std::optional<std::size_t> output_columns();
std::optional<std::size_t> error_columns();  // the same for standard error

std::size_t display_width(std::string_view text);  // in code points
// So many columns of it; with "…" at the end where there is more.
std::string cut_to(std::string_view text, std::size_t columns);

// Every line of `text` that is longer is broken between words, and goes on `hang` columns further in than it began. A
// word that is too long by itself is broken anywhere.
std::string wrapped(std::string_view text, std::size_t columns, std::size_t hang = 2);

}  // namespace norma::cli
