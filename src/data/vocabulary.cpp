#include "norma/data/vocabulary.h"

#include <nlohmann/json.hpp>

#include "core/json.h"
#include "data/pairs.h"
#include "data/utf8.h"
#include "norma/core/error.h"
#include "norma/data/tokenizer.h"

namespace norma {
namespace {

using VocabularyJson = nlohmann::ordered_json;

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = read_code_point(text, at);
    if (c.bytes == 0) return false;
    at += static_cast<std::size_t>(c.bytes);
  }
  return true;
}

// JSON holds UTF-8; other bytes are written in hexadecimal.
void put(VocabularyJson& json, const std::string& key, std::string_view bytes) {
  if (is_utf8(bytes)) {
    json[key] = bytes;
    return;
  }
  std::string digits;
  for (const char c : bytes) digits += fmt::format("{:02x}", static_cast<unsigned char>(c));
  json[key + "_hex"] = digits;
}

std::string take(const VocabularyJson& json, const std::string& key) {
  if (json.contains(key)) return json.at(key).get<std::string>();
  const std::string digits = json.at(key + "_hex").get<std::string>();
  const auto value = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes += static_cast<char>(value(digits[i]) * 16 + value(digits[i + 1]));
  return bytes;
}

SpecialTokens read_marks(const VocabularyJson& json) {
  return {.padding = json.at("padding"),
          .beginning = json.at("beginning"),
          .end = json.at("end"),
          .separator = json.at("separator"),
          .mask = json.at("mask")};
}

// The part of a source that knows names and marks, and has no batches.
class StoredSource : public Source {
 public:
  explicit StoredSource(const VocabularyJson& json) : labels_(json.at("labels").get<std::vector<std::string>>()) {}

  void fill(std::uint64_t, std::uint64_t, Batch&) const final { no_data(); }
  std::int64_t evaluation_batches() const final { return 0; }
  void fill_evaluation(std::int64_t, Batch&) const final { no_data(); }
  std::int64_t classes() const final { return std::ssize(labels_); }
  std::vector<std::string> labels() const final { return labels_; }
  std::optional<double> optimum() const final { return std::nullopt; }

 private:
  [[noreturn]] static void no_data() { fail("the vocabulary of a run has no data"); }

  std::vector<std::string> labels_;
};

class StoredImages final : public StoredSource {
 public:
  explicit StoredImages(const VocabularyJson& json) : StoredSource(json) {
    const VocabularyJson& form = json.at("images");
    reading_ = {.height = form.at("height"),
                .width = form.at("width"),
                .channels = form.at("channels"),
                .side = form.at("resize"),
                .form_channels = form.at("form_channels"),
                .mean = form.at("mean").get<std::vector<float>>(),
                .scale = form.at("scale").get<std::vector<float>>()};
    const auto channels = static_cast<std::size_t>(std::max<std::int64_t>(reading_.channels, 0));
    if (reading_.mean.size() != channels || reading_.scale.size() != channels)
      fail("the run's images have {} channels but {} means", reading_.channels, reading_.mean.size());
  }
  std::int64_t vocabulary() const override { return 0; }
  std::string describe() const override {
    return fmt::format("images of {} x {} x {}", reading_.height, reading_.width, reading_.channels);
  }
  const ImageReading* images() const override { return &reading_; }

 private:
  ImageReading reading_;
};

class VocabularySource final : public StoredSource {
 public:
  explicit VocabularySource(const VocabularyJson& json)
      : StoredSource(json),
        tokenizer_(restore_tokenizer(json.at("tokenizer").get<std::string>(), take(json, "tokens"))),
        vocabulary_(json.at("vocabulary")),
        marks_(read_marks(json.at("marks"))),
        first_(json.at("first")) {}

  std::int64_t vocabulary() const override { return vocabulary_; }
  SpecialTokens special() const override { return marks_; }
  std::string describe() const override { return fmt::format("the vocabulary of the run: {}", tokenizer_->describe()); }
  const Tokenizer* tokenizer() const override { return tokenizer_.get(); }
  std::int32_t first_token() const override { return first_; }

  // Marks stand for no text.
  std::string decode(std::span<const std::int32_t> tokens) const override {
    std::vector<std::int32_t> words;
    for (const std::int32_t token : tokens) {
      if (vocabulary_ == tokenizer_->vocabulary() || (token >= 0 && token < tokenizer_->vocabulary()))
        words.push_back(token);
    }
    return tokenizer_->decode(words);
  }

 private:
  TokenizerPointer tokenizer_;
  std::int64_t vocabulary_;
  SpecialTokens marks_;
  std::int32_t first_;
};

std::string print_images(const DataConfig& config, const Source& source) {
  const ImageReading& reading = *source.images();
  const VocabularyJson json = {{"task", config.task},
                               {"images",
                                {{"height", reading.height},
                                 {"width", reading.width},
                                 {"channels", reading.channels},
                                 {"resize", reading.side},
                                 {"form_channels", reading.form_channels},
                                 {"mean", reading.mean},
                                 {"scale", reading.scale}}},
                               {"labels", source.labels()}};
  return json.dump(2, ' ', false, VocabularyJson::error_handler_t::replace) + "\n";
}

}  // namespace

std::string print_vocabulary(const DataConfig& config, const Source& source) {
  if (source.images() != nullptr) return print_images(config, source);
  const Tokenizer* tokenizer = source.tokenizer();
  if (tokenizer == nullptr || !reads_files(config.task)) return "";
  const SpecialTokens marks = source.special();
  VocabularyJson json = {{"task", config.task}, {"tokenizer", tokenizer->kind()}};
  put(json, "tokens", tokenizer->stored());
  json["vocabulary"] = source.vocabulary();
  json["marks"] = {{"padding", marks.padding},
                   {"beginning", marks.beginning},
                   {"end", marks.end},
                   {"separator", marks.separator},
                   {"mask", marks.mask}};
  json["first"] = source.first_token();
  json["labels"] = source.labels();
  return json.dump(2, ' ', false, VocabularyJson::error_handler_t::replace) + "\n";
}

std::unique_ptr<Source> parse_vocabulary(std::string_view text, std::string_view origin) {
  try {
    const VocabularyJson json = parse_json<VocabularyJson>(text);
    if (json.contains("images")) return std::make_unique<StoredImages>(json);
    return std::make_unique<VocabularySource>(json);
  } catch (const VocabularyJson::exception&) {
    fail("'{}' is damaged: it is no vocabulary", origin);
  }
}

bool append_classified(const Tokenizer& tokenizer, const SpecialTokens& marks, std::string_view text,
                       std::string_view second, std::int64_t time, std::vector<std::int32_t>& row) {
  std::vector<std::int32_t> first_tokens = tokenizer.encode(text), second_tokens = tokenizer.encode(second);
  const bool pair = !second.empty();
  const std::size_t room = static_cast<std::size_t>(time) - (pair ? 2 : 1);
  const bool cut = first_tokens.size() + second_tokens.size() > room;
  if (cut) {
    const std::size_t half = room / 2;
    const std::size_t second_keeps =
        std::min(second_tokens.size(), std::max(half, room - std::min(room, first_tokens.size())));
    first_tokens.resize(std::min(first_tokens.size(), room - second_keeps));
    second_tokens.resize(second_keeps);
  }
  row.push_back(marks.beginning);
  row.insert(row.end(), first_tokens.begin(), first_tokens.end());
  if (pair) row.push_back(marks.separator);
  row.insert(row.end(), second_tokens.begin(), second_tokens.end());
  return cut;
}

}  // namespace norma
