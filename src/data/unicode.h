// The classes of characters that GPT-2's pre-tokenisation asks for.
#pragma once

namespace norma {

bool is_letter(char32_t c);  // category L
bool is_number(char32_t c);  // category N
bool is_space(char32_t c);   // property White_Space

}  // namespace norma
