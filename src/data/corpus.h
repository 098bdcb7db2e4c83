// Runs of tokens from files: text through a tokenizer, or files of token ids.
#pragma once

#include <string>

#include "data/token_view.h"
#include "norma/data/config.h"
#include "norma/data/tokenizer.h"

namespace norma {

struct Corpus {
  TokenView training, validation;
  std::string name;
  std::int64_t vocabulary;
  TokenizerPointer tokenizer;  // may be null
};

Corpus open_text_corpus(const DataConfig& config);

// nanoGPT's .bin (uint16 without a header), or llm.c's (a header of 256 int32: magic, version, count; version 1 holds
// uint16, version 7 uint32). Throws Error naming the first token that does not lie in config.vocabulary.
Corpus open_token_corpus(const DataConfig& config);

}  // namespace norma
