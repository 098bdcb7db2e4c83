#include "data/classification.h"

#include <algorithm>
#include <set>

#include "data/lines.h"
#include "data/text_file.h"
#include "norma/core/error.h"
#include "norma/data/vocabulary.h"

namespace norma {

Classification::Classification(const DataConfig& config, const BatchShape& shape)
    : RecordSource(shape, config.evaluation_batches), name_(config.path) {
  if (shape.time < 2) fail("classification: rows of {} tokens; expected at least 2", shape.time);
  if (config.validation_path.empty()) check_validation_fraction(config.validation_fraction);
  const auto file = open_text_file(config.path, "labelled text");
  std::vector<LabelledText> training = read_labelled(*file, config), validation;
  if (config.validation_path.empty()) {
    const auto kept = std::stable_partition(training.begin(), training.end(), [&](const LabelledText& record) {
      return !held_out(record.text, config.validation_fraction);
    });
    validation.assign(kept, training.end());
    training.erase(kept, training.end());
  } else {
    validation = read_labelled(*open_text_file(config.validation_path, "labelled validation text"), config);
  }
  if (training.empty() || validation.empty()) {
    fail("'{}' gives {} records to train on and {} held out; expected some of each", config.path, training.size(),
         validation.size());
  }
  std::vector<LabelledText> labelled =
      training;  // one file names its classes in both parts; a second one must know them
  if (config.validation_path.empty()) labelled.insert(labelled.end(), validation.begin(), validation.end());
  collect_labels(labelled);
  std::string text;
  for (const LabelledText& record : training) {
    text.append(record.text).append("\n");
    if (!record.second.empty()) text.append(record.second).append("\n");
  }
  tokenizer_ = open_tokenizer(config, text);
  base_ = tokenizer_->vocabulary();
  encode(training, training_);
  encode(validation, validation_);
  set_counts(training_.texts.size(), validation_.texts.size());
}

void Classification::collect_labels(const std::vector<LabelledText>& records) {
  std::set<std::string> distinct;
  for (const LabelledText& record : records) {
    distinct.insert(record.label);
    if (distinct.size() > kMostClasses) {
      fail("'{}' has more than {} distinct labels, among them '{}'; expected classes in data.label_column", name_,
           kMostClasses, record.label);
    }
  }
  labels_.assign(distinct.begin(), distinct.end());
  std::sort(labels_.begin(), labels_.end(), by_number_then_text);
  if (labels_.size() < 2) fail("'{}' has one label only, '{}'; expected at least two classes", name_, labels_.front());
}

void Classification::encode(const std::vector<LabelledText>& records, Side& side) {
  std::vector<std::int32_t> row;
  for (const LabelledText& record : records) {
    row.clear();
    cut_ += append_classified(*tokenizer_, special(), record.text, record.second, shape().time, row) ? 1 : 0;
    const auto label = std::find(labels_.begin(), labels_.end(), record.label);
    if (label == labels_.end()) {
      fail("'{}': held-out label '{}' does not occur in training; known are {}", name_, record.label,
           fmt::join(labels_.begin(), labels_.begin() + std::min<std::ptrdiff_t>(20, std::ssize(labels_)), ", "));
    }
    side.texts.add(row);
    side.labels.push_back(static_cast<std::int32_t>(label - labels_.begin()));
  }
}

SpecialTokens Classification::special() const {
  const auto base = static_cast<std::int32_t>(base_);
  return {.padding = base, .beginning = base + 1, .separator = base + 2};
}

void Classification::clear(Batch& batch) const {
  std::ranges::fill(batch.ids("tokens", {shape().batch, shape().time}), special().padding);
  std::ranges::fill(batch.ids("targets", {shape().batch}), kIgnored);
  std::ranges::fill(batch.ids("lengths", {shape().batch}),
                    1);  // a row without a record still has one token for attention to look at
}

void Classification::write(Part part, std::int64_t record, std::int64_t row, Batch& batch) const {
  const Side& side = part == Part::training ? training_ : validation_;
  const std::span<const std::int32_t> text = side.texts[record];
  std::copy(text.begin(), text.end(), batch.ids("tokens").data() + row * shape().time);
  batch.ids("targets")[static_cast<std::size_t>(row)] = side.labels[static_cast<std::size_t>(record)];
  batch.ids("lengths")[static_cast<std::size_t>(row)] = static_cast<std::int32_t>(text.size());
}

std::string Classification::describe() const {
  return fmt::format("classification '{}' as {}: {} training and {} validation records of {} classes, {} cut to length",
                     name_, tokenizer_->describe(), training_.texts.size(), validation_.texts.size(), labels_.size(),
                     cut_);
}

std::string Classification::decode(std::span<const std::int32_t> tokens) const {
  std::vector<std::int32_t> words;
  std::string text;
  for (const std::int32_t token : tokens) {
    if (token == special().separator) {
      text += tokenizer_->decode(words) + "\t";
      words.clear();
    } else if (token >= 0 && token < base_) {
      words.push_back(token);
    }
  }
  return text + tokenizer_->decode(words);
}

}  // namespace norma
