// Choices that are spelled as words, in configurations and in results: one table for each enum.
#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "norma/core/error.h"
#include "norma/core/names.h"

namespace norma {

template <typename Choice>
struct Word {
  std::string_view word;
  Choice choice;
};

template <typename Choice, std::size_t extent>
std::vector<std::string> words_of(std::span<const Word<Choice>, extent> words) {
  std::vector<std::string> all;
  for (const auto& entry : words) all.emplace_back(entry.word);
  return all;
}

template <typename Choice, std::size_t extent>
std::string_view word_for(std::span<const Word<Choice>, extent> words, Choice choice) {
  const auto found =
      std::find_if(words.begin(), words.end(), [&](const auto& entry) { return entry.choice == choice; });
  NORMA_ASSERT(found != words.end());
  return found->word;
}

template <typename Choice, std::size_t extent>
Choice from_word(std::span<const Word<Choice>, extent> words, std::string_view word, std::string_view what) {
  const auto found = std::find_if(words.begin(), words.end(), [&](const auto& entry) { return entry.word == word; });
  if (found != words.end()) return found->choice;
  const std::vector<std::string> known = words_of(words);
  fail("there is no {} '{}'{}; expected {}", what, word, did_you_mean(word, known), fmt::join(known, ", "));
}

}  // namespace norma
