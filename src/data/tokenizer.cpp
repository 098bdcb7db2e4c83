#include "norma/data/tokenizer.h"

#include "norma/core/error.h"
#include "norma/core/mapped_file.h"
#include "norma/core/names.h"

namespace norma {
namespace {

TokenizerPointer open_sentencepiece(const DataConfig& config, std::string_view text) {
  if (!config.tokenizer_path.empty()) {
    const MappedFile file(config.tokenizer_path, "a SentencePiece model");
    try {
      return sentencepiece_tokenizer(file.text());
    } catch (const Error& error) {
      fail("data.tokenizer_path '{}': {}", config.tokenizer_path, error.what());
    }
  }
  if (config.vocabulary == 0) {
    fail("data.tokenizer is sentencepiece: set data.tokenizer_path to a model, or data.vocabulary to train one");
  }
  return sentencepiece_tokenizer(train_sentencepiece(text, config.vocabulary - 1, config.sentencepiece_model));
}

TokenizerPointer open_by_name(const DataConfig& config, std::string_view text) {
  if (config.tokenizer == "bytes") return byte_tokenizer();
  if (config.tokenizer == "characters") return character_tokenizer(text, config.vocabulary);
  if (config.tokenizer == "words") return word_tokenizer(text, config.vocabulary);
  if (config.tokenizer == "gpt2") return gpt2_tokenizer(config.tokenizer_path);
  if (config.tokenizer == "sentencepiece") return open_sentencepiece(config, text);
  const std::string known[] = {"bytes", "characters", "words", "gpt2", "sentencepiece"};
  fail("unknown data.tokenizer '{}'{}; expected one of {}", config.tokenizer, did_you_mean(config.tokenizer, known),
       fmt::join(known, ", "));
}

}  // namespace

Tokenizer::~Tokenizer() = default;

TokenizerPointer restore_tokenizer(const std::string& kind, const std::string& stored) {
  if (kind == "bytes") return byte_tokenizer();
  if (kind == "characters") return restore_characters(stored);
  if (kind == "words") return restore_words(stored);
  if (kind == "gpt2") return restore_gpt2(stored);
  if (kind == "sentencepiece") return sentencepiece_tokenizer(stored);
  fail("there is no tokenizer '{}'", kind);
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<std::int32_t> tokens;
  encode(text, tokens);
  return tokens;
}

TokenizerPointer open_tokenizer(const DataConfig& config, std::string_view text) {
  if (config.vocabulary < 0 || config.vocabulary == 1) {
    fail("data.vocabulary is {}; expected at least 2 tokens, or 0 for no limit", config.vocabulary);
  }
  TokenizerPointer tokenizer = open_by_name(config, text);
  if (config.vocabulary > 0 && tokenizer->vocabulary() > config.vocabulary) {
    fail("data.vocabulary is {}, but there are {} tokens ({})", config.vocabulary, tokenizer->vocabulary(),
         tokenizer->describe());
  }
  return tokenizer;
}

}  // namespace norma
