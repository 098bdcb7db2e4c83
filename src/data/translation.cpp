#include "data/translation.h"

#include <algorithm>

#include "data/lines.h"
#include "data/rows.h"
#include "data/text_file.h"
#include "norma/core/error.h"

namespace norma {
namespace {

struct Pair {
  std::string source, target;
};

std::vector<Pair> pairs_of_two_files(const TextFile& sources, const TextFile& targets) {
  const std::vector<std::string_view> x = split_lines(sources.text()), y = split_lines(targets.text());
  if (x.size() != y.size()) {
    fail("'{}' has {} lines and '{}' has {}; expected as many, line by line", sources.path(), x.size(), targets.path(),
         y.size());
  }
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < x.size(); ++i) pairs.push_back({std::string(trim(x[i])), std::string(trim(y[i]))});
  return pairs;
}

std::vector<Pair> pairs_of_table(const TextFile& file, const DataConfig& config) {
  const auto source = static_cast<std::size_t>(config.text_column < 0 ? 0 : config.text_column);
  const auto target = static_cast<std::size_t>(config.second_text_column < 0 ? 1 : config.second_text_column);
  std::vector<Pair> pairs;
  const Layout named = layout_of_name(file.path());
  const TableRows table = read_rows(file.text(), named == Layout::unknown ? Layout::tsv : named, file.path());
  for (std::size_t i = table.named ? 1 : 0; i < table.rows.size(); ++i) {
    const std::vector<std::string>& columns = table.rows[i].cells;
    if (columns.size() <= std::max(source, target)) {
      fail(
          "'{}' line {} has {} columns; expected a pair in columns {} and {}, with a tab between (or a second file as "
          "data.target_path)",
          file.path(), table.rows[i].line, columns.size(), source, target);
    }
    pairs.push_back({std::string(trim(columns[source])), std::string(trim(columns[target]))});
  }
  return pairs;
}

std::vector<Pair> read_pairs(const std::string& path, const std::string& target_path, const DataConfig& config) {
  const auto sources = open_text_file(path, "sentences to translate");
  if (target_path.empty()) return pairs_of_table(*sources, config);
  return pairs_of_two_files(*sources, *open_text_file(target_path, "translations"));
}

// Shares of all pairs: above the first a description says how long rows should be, above the second there is hardly
// anything left to learn from; the third is what that length keeps.
constexpr double kDropsWorthSaying = 0.1, kMostDropped = 0.9, kKept = 0.95;

}  // namespace

Translation::Translation(const DataConfig& config, const BatchShape& shape)
    : RecordSource(shape, config.evaluation_batches), name_(config.path) {
  if (shape.source_time < 1) fail("translation needs an encoder: its rows have {} source tokens", shape.source_time);
  if (config.validation_path.empty()) check_validation_fraction(config.validation_fraction);
  std::vector<Pair> training = read_pairs(config.path, config.target_path, config), validation;
  if (config.validation_path.empty()) {
    const auto kept = std::stable_partition(training.begin(), training.end(), [&](const Pair& pair) {
      return !held_out(pair.source, config.validation_fraction);
    });
    validation.assign(kept, training.end());
    training.erase(kept, training.end());
  } else {
    validation = read_pairs(config.validation_path, config.validation_target_path, config);
  }
  std::string text;
  for (const Pair& pair : training) text.append(pair.source).append("\n").append(pair.target).append("\n");
  tokenizer_ = open_tokenizer(config, text);
  base_ = tokenizer_->vocabulary();

  std::vector<std::int32_t> source, target;
  std::vector<std::int64_t> needed;  // tokens that a pair takes on its longer side
  const auto encode = [&](const std::vector<Pair>& pairs, Side& side) {
    if (pairs.empty())
      fail(
          "'{}' gives {} pairs to train on and {} held out, where pairs of one source stay together; expected some of "
          "each",
          config.path, training.size(), validation.size());
    for (const Pair& pair : pairs) {
      source.clear();
      target.clear();
      tokenizer_->encode(pair.source, source);
      tokenizer_->encode(pair.target, target);
      const bool fits = static_cast<std::int64_t>(source.size()) < shape.source_time &&
                        static_cast<std::int64_t>(target.size()) < shape.time;
      needed.push_back(1 + std::max(std::ssize(source), std::ssize(target)));
      if (source.empty() || target.empty() || !fits) {
        ++dropped_;
        continue;
      }
      side.sources.add(source);
      side.targets.add(target);
      side.texts.push_back(pair.target);
    }
    if (side.sources.size() == 0) {
      fail("'{}': none of {} pairs {} has 1 to {} source and 1 to {} target tokens", config.path, pairs.size(),
           &side == &training_ ? "to train on" : "held out", shape.source_time - 1, shape.time - 1);
    }
  };
  encode(training, training_);
  encode(validation, validation_);
  if (static_cast<double>(dropped_) > kDropsWorthSaying * static_cast<double>(needed.size())) {
    const auto rank = needed.begin() + static_cast<std::ptrdiff_t>(kKept * static_cast<double>(needed.size() - 1));
    std::nth_element(needed.begin(), rank, needed.end());
    time_to_keep_ = *rank;
  }
  if (static_cast<double>(dropped_) > kMostDropped * static_cast<double>(needed.size()))
    fail(
        "'{}': {} of {} pairs are longer than {} source and {} target tokens ({}); model.time = {} would keep {:.0f} %",
        config.path, dropped_, needed.size(), shape.source_time - 1, shape.time - 1, tokenizer_->describe(),
        time_to_keep_, 100 * kKept);
  set_counts(training_.sources.size(), validation_.sources.size());
}

void Translation::write(Part part, std::int64_t record, std::int64_t row, Batch& batch) const {
  const Side& side = part == Part::training ? training_ : validation_;
  const std::span<const std::int32_t> source = side.sources[record], target = side.targets[record];
  std::copy(source.begin(), source.end(), pair_source(shape(), row, batch));
  std::copy(target.begin(), target.end(), pair_answer(shape(), row, batch));
  end_pair(shape(), special(), row, std::ssize(source), std::ssize(target), batch);
}

std::string Translation::reference(std::int64_t index, std::int64_t row) const {
  const std::int64_t record = evaluation_record(index, row);
  return record < 0 ? "" : validation_.texts[static_cast<std::size_t>(record)];
}

std::string Translation::describe() const {
  std::string text =
      fmt::format("translation '{}' as {}: {} training and {} validation pairs, {} dropped by length", name_,
                  tokenizer_->describe(), training_.sources.size(), validation_.sources.size(), dropped_);
  if (time_to_keep_ > 0) text += fmt::format(" (model.time = {} would keep {:.0f} %)", time_to_keep_, 100 * kKept);
  return text;
}

std::string Translation::decode(std::span<const std::int32_t> tokens) const {
  std::vector<std::int32_t> words;
  for (const std::int32_t token : tokens) {
    if (token < base_ && token >= 0) words.push_back(token);
  }
  return tokenizer_->decode(words);
}

}  // namespace norma
