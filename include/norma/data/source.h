// Where batches come from. A source is immutable and batch number i is a pure function of (i, seed), so a run resumes
// exactly from its step alone, and members of a cohort share a source with one seed or with a seed each.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "norma/data/config.h"

namespace norma {

class Tokenizer;

// The target of a position that is not counted in the loss.
inline constexpr std::int32_t kIgnored = -100;

// One batch of token ids; what a task does not use stays empty.
struct Batch {
  std::vector<std::int32_t> tokens;          // [batch, time]
  std::vector<std::int32_t> targets;         // [batch, time], kIgnored where not counted; classification: [batch]
  std::vector<std::int32_t> source;          // [batch, source_time], for an encoder
  std::vector<std::int32_t> source_lengths;  // [batch]
  std::vector<std::int32_t> lengths;         // [batch], where rows are padded
};

// How a model reads the rows of a task.
enum class ReadingManner : std::uint8_t {
  onward,  // from left to right, so that every next token may be a question
  whole,   // all at once, so that what is asked must not stand in the row
  paired,  // a source all at once, then the answer from left to right
};

struct BatchShape {
  std::int64_t batch = 0;
  std::int64_t time = 0;
  std::int64_t source_time = 0;  // for encoder-decoders; 0 asks a task of both forms for rows of one side
};

// Tokens with a part to play; -1: the source has none such.
struct SpecialTokens {
  std::int32_t padding = -1, beginning = -1, end = -1, separator = -1, mask = -1;
};

class Source {
 public:
  virtual ~Source();

  // Training batch number `index` under `seed`. Allocates only when `batch` is used for the first time.
  virtual void fill(std::uint64_t index, std::uint64_t seed, Batch& batch) const = 0;

  // Held-out batches, the same for every seed. Rows beyond the data have no counted target.
  virtual std::int64_t evaluation_batches() const = 0;
  virtual void fill_evaluation(std::int64_t index, Batch& batch) const = 0;

  virtual std::int64_t vocabulary() const = 0;
  // Classes of a classification task, 0 for any other.
  virtual std::int64_t classes() const { return 0; }
  virtual SpecialTokens special() const { return {}; }
  // The best loss any model can reach, in nats per counted target, where it is known.
  virtual std::optional<double> optimum() const = 0;
  virtual std::string describe() const = 0;
  virtual std::string decode(std::span<const std::int32_t> tokens) const;  // ids between spaces unless it knows better
  // How text becomes tokens; null where there is no text.
  virtual const Tokenizer* tokenizer() const { return nullptr; }
  // Translation: the right answer of a row of an evaluation batch, as it stands in the file.
  virtual std::string reference(std::int64_t index, std::int64_t row) const;
};

// Throws Error for an unknown task (naming the nearest), a file that is missing, empty, too short or not what the task
// reads, and a shape the task cannot fill.
std::unique_ptr<Source> open_source(const DataConfig& config, const BatchShape& shape);

// Throws Error, naming both numbers, when a model with `model_vocabulary` tokens cannot read what `source` yields.
void check_vocabulary(const Source& source, std::int64_t model_vocabulary);

// Every value of DataConfig::task.
std::span<const std::string> task_names();
// Those that suit this reading; the first needs no file and is the usual one, and so is the first that does.
std::vector<std::string> tasks_for(ReadingManner reading);
bool reads_files(std::string_view task);  // or it is generated

}  // namespace norma
