// Where batches come from. A source is immutable and batch number i is a pure function of (i, seed), so a run resumes
// exactly from its step alone, and members of a cohort share a source with one seed or with a seed each.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "norma/data/batch.h"
#include "norma/data/config.h"
#include "norma/data/images.h"

namespace norma {

class Tokenizer;
struct GaussianMixture;

// Tensors of the tasks that are there; kinds of data are names, which a family of models asks for:
//   onward    "tokens", "targets" i32[batch, time]: read from left to right, every next token may be a question
//   whole     the same, read all at once: what is asked must not stand in the row. "lengths" i32[batch] where rows are
//             padded; of a classification "targets" i32[batch]
//   paired    "source" i32[batch, source_time] and "source_lengths" i32[batch] all at once, then the answer in "tokens"
//             and "targets" from left to right
//   images    "image" [batch, height, width, channels] and "targets" i32[batch]; where two images of a batch are mixed,
//             "mixed_targets" i32[batch] of the second and its share in "mixture" [1]
//   noised    the same behind noise: "noised", "timestep", "class" and "answer" (data/diffusion/noised.h)
// A target of kIgnored is not counted.

struct BatchShape {
  std::int64_t batch = 0;
  std::int64_t time = 0;
  std::int64_t source_time = 0;  // for encoder-decoders; 0 asks a task of both forms for rows of one side
  bool noised = false;           // asks a task of images for images behind noise
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

  virtual std::int64_t vocabulary() const = 0;  // 0: there are no tokens
  // Classes of a classification task, 0 for any other.
  virtual std::int64_t classes() const { return 0; }
  virtual std::vector<std::string> labels() const { return {}; }  // of the classes, where they have names
  // How many records or windows are held out, whether or not the evaluation batches show them all; 0: as many as one
  // likes.
  virtual std::int64_t held_out_records() const { return 0; }
  virtual std::int32_t first_token() const;  // that the first held-out row begins with; 0: there are no tokens
  // Sizes that a model takes from the data, by name: vocabulary and classes, and what else a task has.
  virtual std::map<std::string, std::int64_t> sizes() const;
  virtual SpecialTokens special() const { return {}; }
  // The best loss any model can reach, in nats per counted target, where it is known.
  virtual std::optional<double> optimum() const = 0;
  // The best share of right answers on held-out data, where it is known.
  virtual std::optional<double> best_accuracy() const { return std::nullopt; }
  virtual std::string describe() const = 0;
  virtual std::string decode(std::span<const std::int32_t> tokens) const;  // ids between spaces unless it knows better
  // How text becomes tokens; null where there is no text.
  virtual const Tokenizer* tokenizer() const { return nullptr; }
  // How files of images are read; null where there are none.
  virtual const ImageReading* images() const { return nullptr; }
  // Translation: the right answer of a row of an evaluation batch, as it stands in the file.
  virtual std::string reference(std::int64_t index, std::int64_t row) const;
  // The distribution that images are drawn from, where it is a mixture of Gaussians; otherwise null.
  virtual const GaussianMixture* mixture() const { return nullptr; }
  // What this source puts noise on; null: it puts none.
  virtual const Source* clean() const { return nullptr; }
};

// Throws Error for an unknown task (naming the nearest), a file that is missing, empty, too short or not what the task
// reads, and a shape the task cannot fill.
std::unique_ptr<Source> open_source(const DataConfig& config, const BatchShape& shape);

// Throws Error, naming both numbers, when a model with `model_vocabulary` tokens cannot read what `source` yields.
void check_vocabulary(const Source& source, std::int64_t model_vocabulary);

// Every value of DataConfig::task.
std::span<const std::string> task_names();
// Those of this kind; the first needs no file and is the usual one, and so is the first that does.
std::vector<std::string> tasks_for(std::string_view kind);
bool reads_files(std::string_view task);  // or it is generated

// Whether config.path holds labelled texts, as far as its beginning tells. No error where it cannot be read.
bool looks_labelled(const DataConfig& config);

}  // namespace norma
