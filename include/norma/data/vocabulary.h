// What a trained model needs to read and write text: its tokenizer, special tokens and labels, without any data; of a
// model that reads images, how they are read. A run keeps it, so that it can be moved and asked where its data are not.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "norma/data/source.h"

namespace norma {

// As JSON; empty where the source reads neither text nor images of files.
std::string print_vocabulary(const DataConfig& config, const Source& source);

// A source without batches. Throws Error that names `origin` where the text is damaged.
std::unique_ptr<Source> parse_vocabulary(std::string_view json, std::string_view origin);

// Rows of a classifier that reads texts: "<bos> text" or "<bos> text <sep> second", cut to `time` tokens; the longer
// text loses tokens first. Appends to `row`; whether anything was cut.
bool append_classified(const Tokenizer& tokenizer, const SpecialTokens& marks, std::string_view text,
                       std::string_view second, std::int64_t time, std::vector<std::int32_t>& row);

}  // namespace norma
