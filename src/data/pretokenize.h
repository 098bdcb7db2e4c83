// How GPT-2 cuts text before merging: the pieces that its regular expression finds one after another,
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// Bytes that are not UTF-8 count as characters of no class.
#pragma once

#include <cstddef>
#include <string_view>

namespace norma {

// The end of the piece that begins at `begin`, which must lie inside the text.
std::size_t end_of_piece(std::string_view text, std::size_t begin);

}  // namespace norma
