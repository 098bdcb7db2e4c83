// What a trained model says: probabilities of the next token, beam search, and sampling.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "norma/device/session.h"
#include "norma/train/config.h"

namespace norma {

class Cohort;
class Source;

// The weights of one member after some steps.
struct TrainedModel {
  RunConfig config;  // resolved; the tokenizer is that of the run
  std::int64_t step = 0;
  // Valid until the next call.
  std::function<std::span<const std::byte>(const std::string& parameter)> weights;
  std::vector<std::string> warnings = {};  // what was wrong with the run and passed over
};

// A member as it is now. The cohort must outlive the result.
TrainedModel trained_model(Cohort& cohort, int member);
// A member of a run (its newest whole checkpoint) or of a checkpoint file with its configuration in the metadata.
// Throws Error that names the path and what is missing.
TrainedModel open_trained(const std::filesystem::path& run, int member = 0, const SchemeLibrary& schemes = {});

// The data of a trained model, with batches of its shape.
std::shared_ptr<const Source> open_data(const TrainedModel& model);
// The vocabulary that its run has kept, without batches; the data where it has kept none.
std::shared_ptr<const Source> open_vocabulary(const std::filesystem::path& run_or_checkpoint,
                                              const TrainedModel& model);

enum class UnknownWords { refused, kept };  // kept: as the tokenizer's unknown token, as in training

// Tokens of a text, or of ids between spaces where the data are no text; a source gets its end. Throws Error that names
// a word the vocabulary does not have, and for a text that is empty or too long for the model.
std::vector<std::int32_t> encode_prompt(const TrainedModel& model, const Source& source, std::string_view text,
                                        UnknownWords unknown = UnknownWords::refused);

// Copies the weights into the parameters of a session's plan, and writes its schedules' values after the last step.
void load_model(const TrainedModel& model, const std::vector<Schedule>& schedules, Session& session);

// The next token after each of several prefixes. Shapes are fixed, so every call runs the whole decoder over `time`
// tokens, but the encoder runs once for each set of sources, and the head only at the last token of each prefix.
class Predictor {
 public:
  // `rows` prefixes at once. Of an encoder-decoder, row r continues source r / rows_per_source.
  Predictor(const TrainedModel& model, std::int64_t rows, std::int64_t rows_per_source = 1);
  ~Predictor();
  Predictor(Predictor&&) noexcept;
  Predictor& operator=(Predictor&&) = delete;

  std::int64_t rows() const { return rows_; }
  std::int64_t rows_per_source() const { return rows_per_source_; }
  std::int64_t time() const { return config_.time; }
  std::int64_t vocabulary() const { return config_.vocabulary; }
  bool has_source() const { return config_.family->speech == Speech::answers; }
  double flops() const;  // of one call of run(), without attention

  // Encoder-decoder: what the next prefixes are to translate, at most rows / rows_per_source of them.
  void read_sources(std::span<const std::vector<std::int32_t>> sources);
  // At most `rows` prefixes; an empty one is passed over. Of a prefix longer than `time` the last `time` tokens count.
  void run(std::span<const std::vector<std::int32_t>> prefixes);
  // After run: logits of the next token, [vocabulary], and the logarithm of the sum of their exponentials.
  std::span<const float> logits(std::int64_t row) const;
  double log_sum(std::int64_t row) const { return log_sums_[static_cast<std::size_t>(row)]; }

 private:
  ModelConfig config_;
  std::int64_t rows_, rows_per_source_, source_time_;
  std::unique_ptr<Session> encoder_, decoder_;
  std::vector<float> logits_;
  std::vector<double> log_sums_;
};

// What was said after a prefix.
struct Hypothesis {
  std::vector<std::int32_t> tokens = {};  // without prefix and end
  double log_probability = 0;             // of tokens, and of the end where it came
  double score = 0;                       // what beam search ranks by
  bool ended = false;                     // false: cut at the most tokens allowed
};

struct TokenRules {
  std::int64_t most_tokens = 200;        // an encoder-decoder also stops at its `time`
  std::int32_t end = -1;                 // -1: there is none
  std::vector<std::int32_t> never = {};  // padding and the like
};

struct BeamOptions {
  std::int64_t beam = 4;
  double alpha = 0.6;
};

// Wu et al. 2016: log-probability over ((5 + length) / 6)^alpha, where the end counts as a token.
double length_normalised(double log_probability, std::int64_t length, double alpha);

// The best hypothesis found for each prefix; rows_per_source of the predictor must be `beam`, and there may be at most
// rows / beam prefixes. Each step keeps the `beam` most probable continuations; those that end leave the beam, which
// goes on narrower, so a beam of 1 is greedy and a beam wide enough for all hypotheses is exhaustive. A prefix is done
// when its beam is empty or nothing left in it can still win. Ties go to the better parent, then to the smaller token.
std::vector<Hypothesis> beam_search(Predictor& predictor, std::span<const std::vector<std::int32_t>> prefixes,
                                    const TokenRules& rules, const BeamOptions& options);

struct SampleOptions {
  double temperature = 0;  // 0: always the most probable token
  std::int64_t top_k = 0;  // among so many; 0: all
  std::uint64_t seed = 1;
  std::uint64_t first_row = 0;       // the number of the first prefix, where others came before
  std::function<bool()> go_on = {};  // asked before every token; what was said until it says no is kept
};

// One hypothesis for each prefix, token by token. What is drawn depends on seed, row and position alone. Ties go to the
// smaller token.
std::vector<Hypothesis> sample(Predictor& predictor, std::span<const std::vector<std::int32_t>> prefixes,
                               const TokenRules& rules, const SampleOptions& options);

// What the tokens of `source` ask for: its end, and never padding, other marks or ids that mean nothing.
TokenRules token_rules(const Source& source, const ModelConfig& config);

struct GenerateOptions {
  std::int64_t most_tokens = 200;
  std::optional<BeamOptions> beam = {};  // none: sampling
  SampleOptions sample = {};
  // Called in the order of the prompts, as soon as a prompt and all before it are done. Without it, prompts of like
  // length go together wherever they stand; with it, only those that stand near.
  std::function<void(std::size_t prompt, const Hypothesis&)> done = {};
};

// Continues any number of prompts, or translates them where the model is an encoder-decoder, in batches of the model's
// size. The result is in the order of the prompts.
std::vector<Hypothesis> generate(const TrainedModel& model, const Source& source,
                                 std::span<const std::vector<std::int32_t>> prompts, const GenerateOptions& options);

}  // namespace norma
