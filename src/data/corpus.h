// Runs of tokens from files: text through a tokenizer, or files of token ids.
#pragma once

#include "data/windows.h"

namespace norma {

Corpus open_text_corpus(const DataConfig& config);

}  // namespace norma
