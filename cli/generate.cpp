// norma generate: what a trained model says, or what it is worth on held-out data.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/output.h"
#include "cli/progress.h"
#include "cli/stop.h"
#include "cli/verbs.h"
#include "norma/core/error.h"
#include "norma/core/mapped_file.h"
#include "norma/train/generate.h"
#include "norma/train/judge.h"

namespace norma::cli {
namespace {

using json = nlohmann::json;

struct Options {
  std::string run;
  SchemeLibrary schemes = SchemeLibrary::of_environment();
  std::optional<std::string> prompt, source;
  bool evaluate = false;
  std::optional<std::int64_t> beam, top_k;
  std::optional<double> temperature;
  double alpha = BeamOptions{}.alpha;
  std::int64_t tokens = 200;
  std::uint64_t seed = 1;
  int member = 0;
  std::int64_t threads = 0;
  std::string device;  // empty: as in the run
  bool json = false;
};

constexpr double kTemperature = 0.8;
constexpr std::int64_t kTopK = 40;

std::vector<std::string> lines_of(const std::string& path) {
  const std::string text = read_text(path);
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    if (!lines.back().empty() && lines.back().back() == '\r') lines.back().pop_back();
    at = end + 1;
  }
  if (lines.empty()) fail("'{}' is empty; expected one text per line", path);
  return lines;
}

class Generation {
 public:
  explicit Generation(const Options& options)
      : options_(options),
        progress_(options.json),
        model_((progress_.at("reading the model"), open_trained(options.run, options.member, options.schemes))) {
    if (options.threads > 0) model_.config.train.threads = options.threads;
    if (!options.device.empty()) model_.config.train.device = parse_device(options.device);
    for (const std::string& warning : model_.warnings) progress_.warn(warning);
    check_can_speak();
    progress_.at("reading its vocabulary and data");
    source_ = options.evaluate ? open_data(model_) : open_vocabulary(options.run, model_);
  }

  void run() {
    if (options_.evaluate) return evaluate();
    say(texts());
    if (options_.json) print({{"outputs", outputs_}});
    if (stop_) throw Stopped();
  }

 private:
  bool translates() const { return model_.config.model.family->speech == Speech::answers; }

  // Before data are opened, which may take long.
  void check_can_speak() const {
    const ModelConfig& config = model_.config.model;
    if (options_.evaluate) return;
    const std::string& task = model_.config.data.task;
    if (config.classes > 0)
      fail("'{}' is a classifier of {} classes: {}--evaluate tells how good it is", options_.run, config.classes,
           task == "classification" || task == "images"
               ? fmt::format("norma predict lets it label {}, ", task == "images" ? "images" : "texts")
               : "");
    if (config.family->speech == Speech::none)
      fail("'{}' is of the family {} and says nothing; --evaluate tells how good it is", options_.run,
           config.family->name);
    if (translates() && !options_.prompt && !options_.source)
      fail("'{}' translates; give a text with --prompt or a file of lines with --source, or --evaluate", options_.run);
  }

  std::vector<std::string> texts() const {
    if (options_.source) return lines_of(*options_.source);
    return {options_.prompt.value_or("")};
  }

  // Without a prompt it begins as the first held-out row does.
  std::vector<std::int32_t> first_token() const { return {source_->first_token()}; }

  void say(const std::vector<std::string>& texts) {
    std::vector<std::vector<std::int32_t>> prompts;
    for (const std::string& text : texts) {
      if (options_.source && text.find_first_not_of(" \t") == std::string::npos)
        fail("'{}' line {} is empty", *options_.source, prompts.size() + 1);
      const bool given = options_.prompt || options_.source;
      const UnknownWords unknown = options_.source ? UnknownWords::kept : UnknownWords::refused;
      prompts.push_back(given ? encode_prompt(model_, *source_, text, unknown) : first_token());
    }
    GenerateOptions how{.most_tokens = options_.tokens};
    if (options_.beam || (translates() && !options_.temperature && !options_.top_k)) {
      how.beam = beam();
    } else {
      how.sample = {.temperature = options_.temperature.value_or(kTemperature),
                    .top_k = options_.top_k.value_or(kTopK),
                    .seed = options_.seed};
    }
    // One text is shown as far as it came; of several, those that are done have been.
    const bool kept = !how.beam && prompts.size() == 1;
    if (kept) how.sample.go_on = [this] { return !stop_; };
    const StopScope scope(kept ? Stop::when_saved : Stop::at_once);
    const auto tell = [&](std::size_t done) {
      progress_.at(Progress::Now{.what = fmt::format("writing at most {} tokens for {} text{}", options_.tokens,
                                                     prompts.size(), prompts.size() == 1 ? "" : "s"),
                                 .share = static_cast<double>(done) / static_cast<double>(prompts.size())});
    };
    tell(0);
    how.done = [&](std::size_t i, const Hypothesis& said) {
      progress_.clear();
      show(texts[i], prompts[i], said);
      flush_out();  // who reads a pipe sees it as well
      if (i + 1 < prompts.size()) tell(i + 1);
    };
    generate(model_, *source_, prompts, how);
    progress_.clear();
  }

  BeamOptions beam() const { return {.beam = options_.beam.value_or(BeamOptions{}.beam), .alpha = options_.alpha}; }

  void show(const std::string& text, const std::vector<std::int32_t>& prompt, const Hypothesis& said) {
    if (options_.json) {
      outputs_.push_back({{"prompt", text},
                          {"text", source_->decode(said.tokens)},
                          {"tokens", said.tokens},
                          {"log_probability", said.log_probability},
                          {"score", said.score},
                          {"ended", said.ended}});
      return;
    }
    std::vector<std::int32_t> whole = translates() ? std::vector<std::int32_t>() : prompt;
    whole.insert(whole.end(), said.tokens.begin(), said.tokens.end());
    write_said(source_->decode(whole) + "\n");
  }

  void evaluate() {
    progress_.at(fmt::format("judging on {} held-out batches", source_->evaluation_batches()));
    const Scores scores = judge(model_, *source_, {.beam = beam()});
    progress_.clear();
    if (scores.empty()) fail("'{}' has no held-out data to be judged by", options_.run);
    json named = json::object();
    for (const Score& score : scores) {
      named[score.name] = score.value;
      if (!options_.json) cli::print("{:<16} {:.4f}\n", score.name, score.value);
    }
    if (options_.json) print({{"scores", named}});
  }

  void print(json result) const {
    result["run"] = options_.run;
    result["member"] = options_.member;
    result["step"] = model_.step;
    // Bytes that a model says need not be UTF-8.
    write_json(result.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
  }

  const Options& options_;
  const std::atomic<bool>& stop_ = stop_on_signals();
  Progress progress_;
  TrainedModel model_;
  std::shared_ptr<const Source> source_;
  json outputs_ = json::array();
};

}  // namespace

void add_generate(CLI::App& app, int&) {
  const auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("generate", "Let a trained model continue a text, translate, or be judged");
  verb->add_option("run", options->run, "Run directory or checkpoint")->required()->type_name(kRun);
  CLI::Option* prompt = verb->add_option("--prompt", options->prompt,
                                         "Text to continue or to translate; token ids where the data are not text");
  CLI::Option* source =
      verb->add_option("--source", options->source, "File with one such text per line")->type_name(kFile);
  CLI::Option* evaluate =
      verb->add_flag("--evaluate", options->evaluate, "Loss, accuracy and BLEU on the held-out data instead");
  prompt->excludes(source)->excludes(evaluate);
  source->excludes(evaluate);
  CLI::Option* beam = verb->add_option("--beam", options->beam, "Beam search of this width; 4 for translation");
  verb->add_option("--alpha", options->alpha, "Exponent of beam search's length normalisation")->capture_default_str();
  verb->add_option("--tokens", options->tokens, "At most so many tokens")->capture_default_str();
  CLI::Option* temperature =
      verb->add_option("--temperature", options->temperature,
                       "Sample at this temperature; 0: always the most probable token (language models: 0.8)");
  CLI::Option* top_k = verb->add_option(
      "--top-k", options->top_k, "Sample from so many of the most probable tokens; 0: all (language models: 40)");
  beam->excludes(temperature)->excludes(top_k);
  verb->add_option("--seed", options->seed, "Of the sampling")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{0}, kLargestSeed));
  add_trained_options(*verb, options->member, options->threads, options->device);
  verb->add_flag("--json", options->json, "Print as JSON, with tokens and log-probabilities");
  add_schemes_dir(*verb, options->schemes);
  verb->callback([options] { Generation(*options).run(); });
}

}  // namespace norma::cli
