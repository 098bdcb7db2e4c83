// Text to token ids and back: bytes, characters, words, GPT-2's byte-level BPE, SentencePiece.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "norma/data/config.h"

namespace norma {

class Tokenizer {
 public:
  virtual ~Tokenizer();

  virtual std::int64_t vocabulary() const = 0;
  // Appends the tokens of `text`.
  virtual void encode(std::string_view text, std::vector<std::int32_t>& tokens) const = 0;
  // The replacement character stands for ids that mean nothing; no ids are an error.
  virtual std::string decode(std::span<const std::int32_t> tokens) const = 0;
  virtual std::string describe() const = 0;
  // What data.tokenizer calls it, and bytes that restore_tokenizer makes the same of.
  virtual std::string kind() const = 0;
  virtual std::string stored() const { return ""; }
  // SentencePiece: the model, as bytes of its file; empty for any other.
  virtual std::string_view model() const { return {}; }

  std::vector<std::int32_t> encode(std::string_view text) const;
};

using TokenizerPointer = std::shared_ptr<const Tokenizer>;

TokenizerPointer byte_tokenizer();

// The characters of `text`, by code point, behind <unk> = 0; the `limit` most frequent tokens when limit > 0. Throws
// Error when the text is not UTF-8, naming the byte.
TokenizerPointer character_tokenizer(std::string_view text, std::int64_t limit = 0);

// Words between white space, most frequent first, behind <unk> = 0 and <eos> = 1, which stands for the end of a line.
// "<unk>" in the text is <unk>. The `limit` most frequent tokens when limit > 0.
TokenizerPointer word_tokenizer(std::string_view text, std::int64_t limit = 0);

// GPT-2's tokenizer from a folder with vocab.json and merges.txt. Any bytes survive encode and decode. Special tokens
// such as <|endoftext|> are not looked for in texts.
TokenizerPointer gpt2_tokenizer(const std::string& folder);

// A SentencePiece model, as bytes of its file; each end of line is one more token behind the model's own.
TokenizerPointer sentencepiece_tokenizer(std::string_view model);

// Trains a SentencePiece model ("unigram" or "bpe") of `vocabulary` tokens on the lines of `text`, to be written to a
// file or given to sentencepiece_tokenizer (whose vocabulary has the end of line as well). The same text gives the same
// model.
std::string train_sentencepiece(std::string_view text, std::int64_t vocabulary, const std::string& model);

// What `config` asks for, trained on `text` where the tokenizer learns. Throws Error for an unknown name, and when the
// tokenizer has more tokens than config.vocabulary allows.
TokenizerPointer open_tokenizer(const DataConfig& config, std::string_view text);

// From what a tokenizer of this kind said of itself. Throws Error for an unknown kind.
TokenizerPointer restore_tokenizer(const std::string& kind, const std::string& stored);
TokenizerPointer restore_characters(std::string_view stored);
TokenizerPointer restore_words(std::string_view stored);
TokenizerPointer restore_gpt2(const std::string& stored);

}  // namespace norma
