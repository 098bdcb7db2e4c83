// norma predict: what a trained classifier says of texts or images.
#include <fmt/format.h>

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/output.h"
#include "cli/progress.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "norma/core/error.h"
#include "norma/core/mapped_file.h"
#include "norma/store/folder.h"
#include "norma/train/predict.h"

namespace norma::cli {
namespace {

struct PredictOptions {
  std::string run, source, device;
  std::vector<std::string> texts;
  SchemeLibrary schemes = SchemeLibrary::of_environment();
  int member = 0;
  std::int64_t threads = 0;
  bool json = false;
};

std::vector<std::string> texts_of(const PredictOptions& options) {
  if (!options.source.empty() && !options.texts.empty())
    fail("norma predict takes texts, or a file with one text a line as --source; both were given");
  if (options.source.empty()) return options.texts;
  std::vector<std::string> lines;
  const MappedFile file(options.source, "texts to classify, one a line");
  for (std::size_t at = 0; at < file.size();) {
    const std::size_t end = std::min(file.text().find('\n', at), file.size());
    lines.emplace_back(file.text().substr(at, end - at));
    if (lines.back().ends_with('\r')) lines.back().pop_back();
    at = end + 1;
  }
  return lines;
}

// `what` the records are: "text" or "image".
void print_json(const PredictOptions& options, const char* what, const std::vector<std::string>& records,
                const std::vector<std::string>& labels, const std::vector<ClassPrediction>& all) {
  nlohmann::ordered_json predictions = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < all.size(); ++i) {
    nlohmann::ordered_json probabilities;
    for (std::size_t c = 0; c < labels.size(); ++c) probabilities[labels[c]] = all[i].probability[c];
    nlohmann::ordered_json one = {
        {what, records[i]}, {"label", labels[all[i].best()]}, {"probabilities", probabilities}};
    if (std::string_view(what) == "text") one["cut"] = all[i].cut;
    predictions.push_back(std::move(one));
  }
  const nlohmann::ordered_json result = {
      {"run", options.run}, {"member", options.member}, {"predictions", predictions}};
  write_json(result.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

// Says what is known of the records as soon as it is, so that who stops the verb keeps it.
class Teller {
 public:
  Teller(const PredictOptions& options, Progress& progress, const std::vector<std::string>& records, const char* what,
         std::vector<std::string> labels)
      : progress_(progress), records_(records), labels_(std::move(labels)), quiet_(options.json) {
    for (const std::string& label : labels_) width_ = std::max(width_, display_width(label));
    doing_ = fmt::format("classifying {} {}{}", records.size(), what, records.size() == 1 ? "" : "s");
    tell(0);
  }

  void operator()(std::span<const ClassPrediction> known) {
    if (!quiet_) {
      progress_.clear();
      for (; said_ < known.size(); ++said_) print_line(records_[said_], known[said_]);
      flush_out();
    }
    if (known.size() < records_.size()) tell(known.size());
  }

 private:
  void tell(std::size_t known) {
    progress_.at(
        Progress::Now{.what = doing_, .share = static_cast<double>(known) / static_cast<double>(records_.size())});
  }

  void print_line(const std::string& record, const ClassPrediction& said) const {
    const std::string line =
        fmt::format("{:<{}}  {:.3f}  {}", labels_[said.best()], width_, said.probability[said.best()], record);
    print("{}\n", output_columns() ? cut_to(line, *output_columns()) : line);
  }

  Progress& progress_;
  const std::vector<std::string>& records_;
  const std::vector<std::string> labels_;
  const bool quiet_;
  std::string doing_;
  std::size_t width_ = 0, said_ = 0;
};

// Files and folders, one after another.
NamedImages read_all(const ImageReading& reading, std::vector<std::string> paths, const PredictOptions& options) {
  if (!options.source.empty()) paths.insert(paths.begin(), options.source);
  NamedImages all;
  for (const std::string& path : paths) {
    NamedImages some = read_images_as(reading, path);
    all.names.insert(all.names.end(), some.names.begin(), some.names.end());
    all.numbers.insert(all.numbers.end(), some.numbers.begin(), some.numbers.end());
  }
  return all;
}

void run_predict(const PredictOptions& options) {
  if (options.source.empty() && options.texts.empty())
    fail(
        "norma predict takes texts, or a file with one text a line as --source; or images, in files or folders; none "
        "was given");
  Progress progress(options.json);
  progress.at("reading the model");
  TrainedModel model = open_trained(options.run, options.member, options.schemes);
  for (const std::string& warning : model.warnings) progress.warn(warning);
  if (options.threads > 0) model.config.train.threads = options.threads;
  if (!options.device.empty()) model.config.train.device = parse_device(options.device);
  const bool texts = model.config.data.task == "classification";
  const bool of_images = model.config.data.task == "images" && model.config.model.family->data == "images";
  if (!texts && !of_images)  // others learn from images as well, but name no class
    fail("'{}' is not a classifier of texts or images: it was trained on the task {}", options.run,
         model.config.data.task);
  std::vector<std::string> records;
  if (texts) records = texts_of(options);
  for (const std::string& text : options.texts) {
    if (texts && kind_of(text) == PathKind::file)
      progress.warn(fmt::format("'{}' is taken for a text; --source {} labels the lines of that file", text, text));
  }
  progress.at("reading its vocabulary");
  const std::shared_ptr<const Source> vocabulary = open_vocabulary(options.run, model);
  const char* what = texts ? "text" : "image";
  NamedImages images;
  if (!texts) {
    progress.at("reading images");
    images = read_all(*vocabulary->images(), options.texts, options);
    records = images.names;
  }
  Teller teller(options, progress, records, what, vocabulary->labels());
  const std::vector<ClassPrediction> all = texts ? classify(model, *vocabulary, records, std::ref(teller))
                                                 : classify_images(model, *vocabulary, images, std::ref(teller));
  progress.clear();
  if (options.json) print_json(options, what, records, vocabulary->labels(), all);
}

}  // namespace

void add_predict(CLI::App& app, int&) {
  const auto options = std::make_shared<PredictOptions>();
  CLI::App* verb = app.add_subcommand("predict", "Let a trained classifier label texts or images");
  verb->add_option("run", options->run, "Run directory or checkpoint")->required()->type_name(kRun);
  verb->add_option(
          "texts", options->texts,
          "Texts to label, a second sentence behind a tab; or images: PNG or JPEG files, folders of them, IDX, NPY")
      ->type_name(kText);
  verb->add_option("--source", options->source, "File with one text a line; or one more file or folder of images")
      ->type_name(kFile);
  add_trained_options(*verb, options->member, options->threads, options->device);
  verb->add_flag("--json", options->json, "Print JSON, with the probability of every label");
  add_schemes_dir(*verb, options->schemes);
  verb->callback([options] { run_predict(*options); });
}

}  // namespace norma::cli
