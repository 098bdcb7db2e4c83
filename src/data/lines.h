// Texts by line and by column.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace norma {

// Lines without their ends ("\n" or "\r\n") and without a byte order mark; a last empty line is none.
std::vector<std::string_view> split_lines(std::string_view text);

std::vector<std::string_view> split_columns(std::string_view line);

std::string_view trim(std::string_view text);

// An order of labels: 2 before 10, numbers before words.
bool by_number_then_text(const std::string& a, const std::string& b);

// Whether a record belongs to the held-out share, decided by a hash of its text: equal texts stay on one side, and a
// file sorted by length or label splits evenly.
bool held_out(std::string_view text, double fraction);

}  // namespace norma
