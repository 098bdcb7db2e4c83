#include <algorithm>
#include <cstring>

#include "data/corpus.h"
#include "data/text_file.h"
#include "norma/core/error.h"
#include "norma/core/mapped_file.h"

namespace norma {
namespace {

constexpr std::int32_t kMagicOfGpt2 = 20240520, kMagicOfLlama3 = 20240801;
constexpr std::int32_t kVersionOfHalves = 1, kVersionOfWords = 7;
constexpr std::size_t kHeaderBytes = std::size_t{256} * 4;

TokenView with_header(const std::shared_ptr<const MappedFile>& file) {
  std::int32_t header[3];
  std::memcpy(header, file->data(), sizeof header);
  const std::int32_t version = header[1], count = header[2];
  if (version != kVersionOfHalves && version != kVersionOfWords) {
    fail("'{}' is a token file of version {}; expected {} (uint16) or {} (uint32)", file->path(), version,
         kVersionOfHalves, kVersionOfWords);
  }
  const auto width = version == kVersionOfHalves ? TokenView::Width::half : TokenView::Width::word;
  const std::size_t held = (file->size() - kHeaderBytes) / static_cast<std::size_t>(width);
  if (count < 1 || static_cast<std::size_t>(count) > held) {
    fail("'{}' says it has {} tokens, but its {} bytes hold {}", file->path(), count, file->size(), held);
  }
  return {file->data() + kHeaderBytes, count, width, file};
}

TokenView open_token_file(const std::string& path) {
  if (path.empty()) fail("no file was given for token ids; set data.path");
  const auto file = std::make_shared<const MappedFile>(path, "token ids");
  std::int32_t magic = 0;
  if (file->size() >= kHeaderBytes) std::memcpy(&magic, file->data(), sizeof magic);
  if (magic == kMagicOfGpt2 || magic == kMagicOfLlama3) return with_header(file);
  if (file->size() % 2 != 0) fail("'{}' has {} bytes; expected an even number of them (uint16)", path, file->size());
  return {file->data(), static_cast<std::int64_t>(file->size() / 2), TokenView::Width::half, file};
}

// The largest token; throws Error at the first beyond a limit above 0. A uint32 beyond int32 is always too large.
std::int32_t check_tokens(const TokenView& view, std::int64_t limit, const std::string& path) {
  constexpr std::int64_t kChunk = 4096;
  std::int32_t chunk[kChunk], largest = 0;
  for (std::int64_t begin = 0; begin < view.size(); begin += kChunk) {
    const std::int64_t count = std::min(kChunk, view.size() - begin);
    view.copy(begin, count, chunk);
    for (std::int64_t i = 0; i < count; ++i) {
      largest = std::max(largest, chunk[i]);
      if (chunk[i] >= 0 && (limit == 0 || chunk[i] < limit)) continue;
      fail("'{}': token {} is {}; the vocabulary has {}", path, begin + i, static_cast<std::uint32_t>(chunk[i]),
           limit == 0 ? std::int64_t{1} << 31 : limit);
    }
  }
  return largest;
}

}  // namespace

Corpus open_token_corpus(const DataConfig& config) {
  if (config.vocabulary < 0) fail("data.vocabulary is {}; expected a number of tokens, or 0", config.vocabulary);
  const TokenView all = open_token_file(config.path);
  std::int64_t vocabulary = std::int64_t{check_tokens(all, config.vocabulary, config.path)} + 1;
  Corpus corpus{{}, {}, fmt::format("tokens '{}'", config.path), 0, nullptr};
  if (config.validation_path.empty()) {
    check_validation_fraction(config.validation_fraction);
    const auto cut = static_cast<std::int64_t>(static_cast<double>(all.size()) * (1 - config.validation_fraction));
    corpus.training = all.slice(0, cut);
    corpus.validation = all.slice(cut, all.size());
  } else {
    corpus.training = all;
    corpus.validation = open_token_file(config.validation_path);
    const std::int64_t largest = check_tokens(corpus.validation, config.vocabulary, config.validation_path);
    vocabulary = std::max(vocabulary, largest + 1);
  }
  if (!config.tokenizer_path.empty()) {  // only to print what tokens say
    DataConfig unlimited = config;
    unlimited.vocabulary = 0;
    corpus.tokenizer = open_tokenizer(unlimited, "");
  }
  corpus.vocabulary = config.vocabulary > 0 ? config.vocabulary : vocabulary;
  return corpus;
}

}  // namespace norma
