// SentencePiece models (Kudo and Richardson 2018) through the library of that name. A model knows no line ends, so each
// is one token more, behind the model's own.
#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include <algorithm>

#include "data/utf8.h"
#include "norma/core/error.h"
#include "norma/core/names.h"
#include "norma/data/tokenizer.h"

namespace norma {
namespace {

constexpr std::int64_t kMostTrainingLines = 1'000'000;
constexpr std::size_t kMostLineBytes = std::size_t{1} << 14;  // longer lines are trained on in pieces

// The library puts a line of its own source before what it has to say: "trainer_interface.cc(661) [(a) == (b)] Too
// high".
std::string reason(const sentencepiece::util::Status& status) {
  const std::string_view message = status.message();
  const std::size_t source = message.rfind("] ");
  if (source != std::string_view::npos) return std::string(message.substr(source + 2));
  if (message.find(".cc(") == std::string_view::npos) return std::string(message);
  // Some of its checks say nothing but what they check.
  const std::size_t check = message.find('[');
  const std::string_view failed = check == std::string_view::npos ? message : message.substr(check);
  return fmt::format("its own check {} failed", failed);
}

class SentencePieceTokenizer final : public Tokenizer {
 public:
  explicit SentencePieceTokenizer(std::string_view model) : model_(model) {
    const auto status = processor_.LoadFromSerializedProto({model.data(), model.size()});
    if (!status.ok() || processor_.GetPieceSize() < 1) fail("this is not a SentencePiece model");
    end_of_line_ = processor_.GetPieceSize();
  }

  std::int64_t vocabulary() const override { return end_of_line_ + 1; }

  void encode(std::string_view text, std::vector<std::int32_t>& tokens) const override {
    std::vector<int> line_tokens;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      const auto status = processor_.Encode({text.data() + at, end - at}, &line_tokens);
      if (!status.ok()) fail("SentencePiece could not encode a line: {}", reason(status));
      tokens.insert(tokens.end(), line_tokens.begin(), line_tokens.end());
      if (end < text.size()) tokens.push_back(end_of_line_);
      at = end + 1;
    }
  }

  std::string decode(std::span<const std::int32_t> tokens) const override {
    std::string text;
    std::vector<int> line_tokens;
    const auto flush = [&] {
      std::string line;
      if (processor_.Decode(line_tokens, &line).ok()) text += line;
      line_tokens.clear();
    };
    for (const std::int32_t token : tokens) {
      if (token >= 0 && token < end_of_line_) {
        line_tokens.push_back(token);
        continue;
      }
      flush();
      text += token == end_of_line_ ? "\n" : kReplacement;
    }
    flush();
    return text;
  }

  std::string_view model() const override { return model_; }
  std::string kind() const override { return "sentencepiece"; }
  std::string stored() const override { return model_; }

  std::string describe() const override { return fmt::format("SentencePiece model of {} pieces", end_of_line_); }

 private:
  std::string model_;
  sentencepiece::SentencePieceProcessor processor_;
  std::int32_t end_of_line_ = 0;
};

class Lines final : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(std::string_view text) : text_(text) { Next(); }

  bool done() const override { return done_; }
  const std::string& value() const override { return line_; }
  sentencepiece::util::Status status() const override { return {}; }

  void Next() override {
    if (at_ >= text_.size() || read_ == kMostTrainingLines) {
      done_ = true;
      return;
    }
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    const std::size_t piece = piece_of(text_.substr(at_, end - at_));
    line_.assign(text_.substr(at_, piece));
    at_ += piece + (at_ + piece == end ? 1 : 0);
    ++read_;
  }

 private:
  // A text may be one long line: it is cut between words, or at least between characters.
  static std::size_t piece_of(std::string_view line) {
    if (line.size() <= kMostLineBytes) return line.size();
    const std::size_t space = line.rfind(' ', kMostLineBytes);
    if (space != std::string_view::npos && space > 0) return space;
    std::size_t at = kMostLineBytes;
    while (at > 1 && (static_cast<unsigned char>(line[at]) & 0xC0) == 0x80) --at;
    return at;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::int64_t read_ = 0;
  std::string line_;
  bool done_ = false;
};

}  // namespace

TokenizerPointer sentencepiece_tokenizer(std::string_view model) {
  return std::make_shared<SentencePieceTokenizer>(model);
}

std::string train_sentencepiece(std::string_view text, std::int64_t vocabulary, const std::string& model) {
  const std::string known[] = {"unigram", "bpe"};
  if (std::ranges::find(known, model) == std::end(known)) {
    fail("data.sentencepiece_model is '{}'; expected unigram or bpe{}", model, did_you_mean(model, known));
  }
  if (vocabulary < 2 || vocabulary > 1'000'000) {
    fail("a SentencePiece model of {} tokens cannot be trained; set data.vocabulary to 2 to 1000000", vocabulary);
  }
  // Text is taken as it stands: no normalisation, no white space dropped, every character kept. Frames of sequences are
  // added outside. The number of threads is fixed because sums over threads decide ties.
  const std::unordered_map<std::string, std::string> options = {
      {"model_type", model},
      {"vocab_size", std::to_string(vocabulary)},
      {"hard_vocab_limit", model == "unigram" ? "false" : "true"},
      {"normalization_rule_name", "identity"},
      {"remove_extra_whitespaces", "false"},
      {"character_coverage", "1.0"},
      {"bos_id", "-1"},
      {"eos_id", "-1"},
      {"max_sentence_length", std::to_string(2 * kMostLineBytes)},
      {"num_threads", "4"},
      {"minloglevel", "3"},
  };
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    fail("SentencePiece could not train a {} model: the text to train on is empty", model);
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = read_code_point(text, at);
    if (c.bytes == 0)
      fail("SentencePiece could not train a {} model: the text is not UTF-8, byte {} is 0x{:02x}", model, at,
           static_cast<unsigned char>(text[at]));
    at += static_cast<std::size_t>(c.bytes);
  }
  Lines lines(text);
  std::string trained;
  const auto status = sentencepiece::SentencePieceTrainer::Train(options, &lines, &trained);
  if (!status.ok()) {
    fail("SentencePiece could not train a {} model of {} tokens (data.vocabulary = {}): {}", model, vocabulary,
         vocabulary + 1, reason(status));
  }
  return trained;
}

}  // namespace norma
