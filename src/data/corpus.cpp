#include "data/corpus.h"

#include "data/byte_tokenizer.h"
#include "data/text_file.h"
#include "norma/core/error.h"

namespace norma {
namespace {

TokenView bytes_of(const TextPart& part) {
  return {part.text.data(), static_cast<std::int64_t>(part.text.size()), TokenView::Width::byte, part.file};
}

}  // namespace

Corpus open_text_corpus(const DataConfig& config) {
  const TextParts parts = open_text_parts(config);
  const std::string name = fmt::format("text '{}' as {}", config.path, config.tokenizer);
  if (config.tokenizer == "bytes") {
    return {bytes_of(parts.training), bytes_of(parts.validation), name, 256, std::make_shared<ByteTokenizer>()};
  }
  fail("unknown tokenizer '{}'", config.tokenizer);
}

}  // namespace norma
