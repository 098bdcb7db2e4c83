#include "cli/inspect_choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "cli/overrides.h"
#include "norma/core/error.h"
#include "norma/lab/study.h"
#include "norma/norms/norm.h"
#include "norma/report/report.h"
#include "norma/store/atomic_file.h"
#include "norma/store/run_directory.h"

namespace norma::cli {
namespace {

// What both kinds of inspection were told beside their models.
std::string repeat_choices(const InspectVerb& verb) {
  std::string words = fmt::format(" --batches {}", verb.batches);
  if (!verb.only.empty()) words += " --only " + verb.only;
  const std::vector<std::filesystem::path>& folders = verb.library.folders();  // the last one given first
  for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder)
    words += fmt::format(" --schemes-dir '{}'", folder->string());
  return words;
}

}  // namespace

void settle_choices(InspectVerb& verb) {
  const FamilyStudy& study = verb.family->study;
  const ModelConfig usual = initial_model(verb.family);
  if (verb.schemes.empty())
    verb.schemes = study.schemes.size() < 2 ? std::vector<std::string>{"post", "pre"}
                                            : std::vector<std::string>{study.schemes[0], study.schemes[1]};
  if (verb.depths.empty() && verb.layers > 0) verb.depths = std::to_string(verb.layers);
  if (verb.depths.empty())
    verb.depths = fmt::format("{}", fmt::join(study.depths.empty() ? kInitialDepths : study.depths, ","));
  if (verb.norm.empty()) verb.norm = std::string(name_of(usual.norm));
  if (verb.width == 0) verb.width = usual.width;
}

std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    parts.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::vector<std::int64_t> parse_depths(const std::string& list) {
  constexpr std::int64_t kDeepest = 10000;
  std::vector<std::int64_t> depths;
  for (const std::string& part : split(list)) {
    std::size_t used = 0;
    std::int64_t depth = 0;
    try {
      depth = std::stoll(part, &used);
    } catch (const std::exception&) {
      used = std::string::npos;
    }
    if (used != part.size() || depth < 1 || depth > kDeepest)
      fail("--depths: '{}' in '{}' is not a depth; expected numbers from 1 to {} between commas, such as 6,12,24", part,
           list, kDeepest);
    depths.push_back(depth);
  }
  return depths;
}

bool reads_random(const InspectVerb& verb) { return verb.task == "random" && verb.text.empty(); }

ModelConfig model_of(const InspectVerb& verb) {
  ModelConfig model = initial_model(verb.family, verb.width);
  model.heads = verb.heads;
  model.hidden = verb.hidden;
  model.vocabulary = reads_random(verb) ? verb.vocabulary : 0;
  model.batch = verb.batch;
  model.time = verb.time;
  model.norm = norm(verb.norm).kind;
  if (!reads_random(verb)) {  // the task knows those of the data
    for (const InputSpec& input : model.family->inputs(model)) {
      for (const InputSpec::Size& size : input.sizes) model.sizes.erase(size.name);
    }
    model.classes = 0;
  }
  for (const auto& [name, size] : parse_sizes(verb.sizes)) set_size(model, name, size);
  return model;
}

std::shared_ptr<const Source> open_data(const InspectVerb& verb, const ModelConfig& model) {
  if (reads_random(verb)) return random_data(model);
  DataConfig data;
  data.task = verb.text.empty() ? verb.task : "text";
  data.path = verb.text;
  return open_source(data, batch_shape(model));
}

std::string repeat_command(const InspectVerb& verb) {
  if (!verb.run.empty()) return fmt::format("norma inspect --run '{}'", verb.run) + repeat_choices(verb);
  std::string command = "norma inspect";
  for (const std::string& scheme : verb.schemes) command += fmt::format(" --scheme '{}'", scheme);
  command += fmt::format(" --family {} --depths {} --width {} --heads {} --hidden {} --time {} --batch {} --norm {}",
                         verb.family->name, verb.depths, verb.width, verb.heads, verb.hidden, verb.time, verb.batch,
                         verb.norm);
  if (!verb.sizes.empty()) command += " --sizes " + verb.sizes;
  command += fmt::format(" --seeds {}", verb.seeds);
  command += verb.text.empty() ? fmt::format(" --task {}", verb.task) : fmt::format(" --text '{}'", verb.text);
  if (reads_random(verb)) command += fmt::format(" --vocabulary {}", verb.vocabulary);
  return command + repeat_choices(verb);
}

std::filesystem::path page_unasked(const InspectVerb& verb) {
  if (!verb.report.empty()) return {};
  if (!verb.out.empty()) return std::filesystem::path(verb.out).parent_path() / kReportName;
  if (!verb.run.empty() && kind_of(verb.run) == PathKind::folder)
    return std::filesystem::path(verb.run) / kInspectionName;
  return {};
}

}  // namespace norma::cli
