#include "data/corpus.h"

#include "data/text_file.h"
#include "norma/core/error.h"

namespace norma {
namespace {

TokenView bytes_of(const TextPart& part) {
  return {part.text.data(), static_cast<std::int64_t>(part.text.size()), TokenView::Width::byte, part.file};
}

TokenView encode_part(const Tokenizer& tokenizer, const TextPart& part) {
  return TokenView::of(tokenizer.encode(part.text));
}

}  // namespace

Corpus open_text_corpus(const DataConfig& config) {
  const TextParts parts = open_text_parts(config);
  const TokenizerPointer tokenizer = open_tokenizer(config, parts.training.text);
  Corpus corpus{
      {}, {}, fmt::format("text '{}' as {}", config.path, tokenizer->describe()), tokenizer->vocabulary(), tokenizer};
  if (config.tokenizer == "bytes") {
    corpus.training = bytes_of(parts.training);
    corpus.validation = bytes_of(parts.validation);
  } else {
    corpus.training = encode_part(*tokenizer, parts.training);
    corpus.validation = encode_part(*tokenizer, parts.validation);
  }
  return corpus;
}

}  // namespace norma
