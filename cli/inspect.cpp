// norma inspect: how schemes behave at depth, measured on real networks: gradients, amplification, isometry, curvature.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "cli/findings_table.h"
#include "cli/inspect_choices.h"
#include "cli/output.h"
#include "cli/overrides.h"
#include "cli/progress.h"
#include "cli/run_end.h"
#include "cli/stop.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "norma/core/error.h"
#include "norma/lab/inspect.h"
#include "norma/lab/inspect_words.h"
#include "norma/lab/results.h"
#include "norma/norms/norm.h"
#include "norma/report/report.h"
#include "norma/store/atomic_file.h"
#include "norma/store/environment.h"
#include "norma/store/run_directory.h"
#include "norma/train/data.h"
#include "norma/train/result.h"

namespace norma::cli {
namespace {

// What was found, in plain words, before the numbers.
std::string conclusions_text(const Findings& findings) {
  std::string text;
  for (const std::string& sentence : conclude(findings)) text += sentence + "\n";
  const std::optional<std::size_t> columns = output_columns();
  if (columns) text = wrapped(text, *columns);
  return text.empty() ? text : text + "\n";
}

void show(const InspectVerb& verb, const Findings& findings, Results results) {
  results.environment = environment_now(command_line());
  add_findings(results, findings);
  const std::string all = write_results(results);
  if (!verb.out.empty()) write_atomically(verb.out, all);
  if (!verb.report.empty()) write_report(verb.report, all);
  const std::filesystem::path page = page_unasked(verb);
  if (!page.empty()) write_page(page, [&] { return make_report(all); });
  if (verb.json) {
    write_json(all);
  } else {
    print("{}{}", conclusions_text(findings), findings_table(findings));
    if (!page.empty()) print("\npage: {}\n", page.string());
  }
  if (!verb.json && !verb.quiet) print("\n{:.1f} s\n", results.seconds);
}

TaskFacts task_facts(const std::string& name, const Source& source, const ModelConfig& model) {
  return {.name = name, .description = source.describe(), .optimum = source.optimum(), .unit = loss_unit(model)};
}

// Measures, and when it is asked to stop shows what is known by then. Single measurements of deep models take minutes
// and look at no flag, so a thread of its own waits for the signal and ends the process.
class Inspection {
 public:
  Inspection(const InspectVerb& verb, const Results& results, cli::Progress& display)
      : verb_(verb),
        results_(results),
        display_(display),
        watcher_([this](const std::stop_token& end) { watch(end); }) {}

  norma::Progress progress() {
    return [this](double done, std::string_view what) {
      display_.at(cli::Progress::Now{.what = std::string(what), .share = done});
    };
  }
  PartialFindings measured() {
    return [this](Findings found, std::size_t made, std::size_t all) {
      const std::lock_guard lock(mutex_);
      found.notes.push_back(fmt::format("stopped after {} of {} measurements", made, all));
      partial_ = std::move(found);
    };
  }

  void finish(const Findings& findings) {
    const std::lock_guard lock(mutex_);
    finished_ = true;
    display_.clear();
    show(findings);
  }

 private:
  void watch(const std::stop_token& end) {
    using namespace std::chrono_literals;
    while (!stop_ && !end.stop_requested()) std::this_thread::sleep_for(20ms);
    const std::lock_guard lock(mutex_);
    if (end.stop_requested() || finished_) return;
    display_.clear();
    if (partial_) show(*partial_);
    finish_streams(0);
    std::_Exit(kStoppedCode);
  }

  void show(const Findings& findings) {
    results_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    cli::show(verb_, findings, results_);
  }

  const InspectVerb& verb_;
  Results results_;
  cli::Progress& display_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  StopScope scope_{Stop::when_saved};
  const std::atomic<bool>& stop_ = stop_on_signals();
  std::mutex mutex_;
  std::optional<Findings> partial_;
  bool finished_ = false;
  std::jthread watcher_;  // last: it uses the others
};

// A trained model: the checkpoint's own configuration says everything else.
void inspect_run(const InspectVerb& verb) {
  Progress progress(verb.quiet || verb.json);
  progress.at("reading the model and its data");
  const StoredModel stored = open_stored_model(verb.run, verb.library);
  for (const std::string& warning : stored.warnings) note("warning: {}\n", warning);
  const ModelConfig& model = stored.config.model;
  Subject subject{.model = model, .source = nullptr, .weights = stored.weights};
  subject.source = open_source(stored.config.data, batch_shape(model));
  check_vocabulary(*subject.source, model.vocabulary);
  for (const TrainConfig& member : member_configs(stored.config))
    subject.seeds.push_back(static_cast<std::uint64_t>(member.data_seed));
  subject.step = static_cast<double>(stored.step);
  subject.steps = static_cast<double>(stored.config.train.steps);
  subject.threads = verb.threads;
  subject.device = parse_device(verb.device);
  Results results = new_results(ResultsKind::inspect);
  results.command = repeat_command(verb);
  results.config = print_config(stored.config);
  results.task = task_facts(stored.config.data.task, *subject.source, model);
  const double guessing = guessing_level(*subject.source, subject.seeds.front());
  if (std::isfinite(guessing)) results.task->unigram = guessing;
  Inspection inspection(verb, results, progress);
  Findings findings = inspect(subject, verb.only.empty() ? std::vector<std::string>() : split(verb.only), verb.batches,
                              inspection.progress(), inspection.measured());
  inspection.finish(findings);
}

void run_inspect(InspectVerb verb) {
  if (!verb.run.empty()) {
    if (!verb.schemes.empty() || !verb.depths.empty() || verb.layers > 0)
      fail(
          "--run names a trained model, which has its own scheme and depth; leave out --scheme, --layers and --depths");
    inspect_run(verb);
    return;
  }
  if (!verb.schemes.empty()) verb.schemes = separate_schemes(verb.schemes, verb.library);
  settle_choices(verb);
  InspectOptions options{.schemes = {}, .model = model_of(verb), .depths = parse_depths(verb.depths)};
  for (const std::string& scheme : verb.schemes) options.schemes.push_back(verb.library.find(scheme));
  options.seeds.clear();
  for (const std::int64_t seed : parse_seeds(verb.seeds)) options.seeds.push_back(static_cast<std::uint64_t>(seed));
  if (!verb.only.empty()) options.only = split(verb.only);
  options.batches = verb.batches;
  options.threads = verb.threads;
  options.device = parse_device(verb.device);
  options.theory = true;
  options.open = [&](const ModelConfig& model) { return open_data(verb, model); };
  Progress progress(verb.quiet || verb.json);
  progress.at("reading the data");
  Results results = new_results(ResultsKind::inspect);
  results.command = repeat_command(verb);
  results.task = task_facts(verb.text.empty() ? verb.task : "text", *open_data(verb, options.model), options.model);
  Inspection inspection(verb, results, progress);
  options.measured = inspection.measured();
  inspection.finish(inspect(options, inspection.progress()));
}

// An empty value would read as the option left out, and its default run for minutes.
void check_given(const CLI::App& command) {
  const std::vector<std::pair<const char*, std::string>> expected = {
      {"--scheme", "a name, a formula or a file"},
      {"--depths", "numbers between commas, such as 6,12,24"},
      {"--only", fmt::format("some of {}", fmt::join(instrument_names(), ","))},
      {"--task", "random, or a task of norma train"},
      {"--text", "a text file"},
      {"--run", "a run's directory or a checkpoint"},
      {"--out", "a file to write"},
      {"--report", "a file to write"}};
  for (const auto& [option, words] : expected) {
    for (const std::string& given : command[option]->results()) {
      if (given.empty()) fail("{}: '' is empty; expected {}", option, words);
    }
  }
}

// Some families have one batch only, which the command that is printed names too.
void take_batch_of_family(InspectVerb& verb, bool asked) {
  const std::int64_t only = verb.family->batch;
  if (only == 0) return;
  if (asked && verb.batch != only)
    fail("--batch is {}, but a model of the family {} {}: its batch is {}", verb.batch, verb.family->name,
         verb.family->habit, only);
  verb.batch = only;
}

}  // namespace

void add_inspect(CLI::App& app, int&) {
  const auto verb = std::make_shared<InspectVerb>();
  CLI::App* command =
      app.add_subcommand("inspect", "Measure how schemes behave at depth: gradients, amplification, ...");
  add_schemes_option(*command, verb->schemes,
                     "Names, files or formulas (the first two of the family's study; post and pre)");
  add_family(*command, verb->family);
  command->add_option("--layers,--depth", verb->layers, "One depth")->check(CLI::Range(1, 10000));
  command->add_option("--depths", verb->depths, "Several depths, for exponents (6,12,24)")->type_name(kList);
  command->add_option("--width", verb->width, "Width of the stream (128; of convolutions that of their study)")
      ->check(CLI::Range(1, 1 << 16));
  command->add_option("--heads", verb->heads, "Attention heads (4)")->check(CLI::Range(1, 1 << 12));
  command->add_option("--hidden", verb->hidden, "Width of the feed-forward branch; 0: four times the width")
      ->check(CLI::Range(0, 1 << 20));
  command->add_option("--time", verb->time, "Tokens per sequence (64)")->check(CLI::Range(1, 1 << 16));
  command->add_option("--batch", verb->batch, "Sequences per batch (4)")->check(CLI::Range(1, 1 << 16));
  command->add_option("--norm", verb->norm, "What `norm` means in a formula (layer, or what the family's study has)");
  command->add_option("--sizes", verb->sizes, "Of the family alone: stages=1,image_height=32 (docs/families.md)")
      ->type_name(kList);
  command->add_option("--seeds", verb->seeds, std::string("Networks of each kind (3). ") + kSeedsHelp)
      ->take_last()
      ->type_name(kList);
  command->add_option("--batches", verb->batches, "Batches that gradients are averaged over (8)")
      ->check(CLI::Range(1, 10000));
  command->add_option("--task", verb->task, "random, or a task of norma train (random)");
  command->add_option("--vocabulary", verb->vocabulary, "Of random tokens (256)")->check(CLI::Range(2, 1 << 20));
  command->add_option("--text", verb->text, "A text file to read bytes from")->type_name(kFile);
  command
      ->add_option("--only", verb->only,
                   fmt::format("Some of {}; commas between them", fmt::join(instrument_names(), ", ")))
      ->type_name(kList);
  command->add_option("--run", verb->run, "A run's directory or a checkpoint: inspect this trained model")
      ->type_name(kRun);
  command->add_option("--threads", verb->threads, "0: all cores")->check(CLI::Range(0, kMostThreads));
  command->add_option("--device", verb->device, "Where models run (auto)")->type_name("auto|cpu|cuda");
  command->add_option("--out", verb->out, "Write results.json to this file")->type_name(kFile);
  command->add_option("--report", verb->report, "Write a report to this file: one HTML page with figures")
      ->type_name(kFile);
  command->add_flag("--json", verb->json, "Print JSON");
  command->add_flag("--quiet", verb->quiet, "No progress, no times");
  add_schemes_dir(*command, verb->library);
  command->callback([verb, command] {
    check_given(*command);
    take_batch_of_family(*verb, (*command)["--batch"]->count() > 0);
    run_inspect(*verb);
  });
}

}  // namespace norma::cli
