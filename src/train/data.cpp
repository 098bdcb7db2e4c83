#include "norma/train/data.h"

#include <algorithm>

#include "norma/core/error.h"
#include "norma/train/feeder.h"

namespace norma {
namespace {

bool suits(const std::string& task, const std::string& kind) {
  const std::vector<std::string> all = tasks_for(kind);
  return std::find(all.begin(), all.end(), task) != all.end();
}

std::string families_for(const std::string& task) {
  std::string names;
  for (const FamilyRow& one : families()) {
    if (suits(task, one.data)) names += fmt::format("{}\"{}\"", names.empty() ? "" : " or ", one.name);
  }
  return names;
}

// How long the rows of an input are that the model may have; 0: it has none of that name.
std::int64_t length_of(const std::vector<InputSpec>& inputs, std::string_view name) {
  const auto found = std::ranges::find(inputs, name, &InputSpec::name);
  return found == inputs.end() ? 0 : found->sizes.back().value;
}

}  // namespace

RunConfig settle_task(RunConfig config) {
  if (config.data.task != kFamilyTask) return config;
  // Whoever names a file wants to learn it.
  const bool file = !config.data.path.empty();
  const std::vector<std::string> tasks = tasks_for(config.model.family->data);
  const auto usual = std::ranges::find_if(tasks, [&](const std::string& task) { return reads_files(task) == file; });
  if (usual == tasks.end())
    fail("data.path is '{}', but no task for model.family = \"{}\" reads {}; expected one of {}", config.data.path,
         config.model.family->name, file ? "a file" : "anything but files", fmt::join(tasks, ", "));
  config.data.task = *usual;
  // A classifier's family may learn labelled texts or the text itself; a table says which.
  const bool classifies = std::ranges::find(tasks, "classification") != tasks.end();
  if (file && classifies && looks_labelled(config.data)) config.data.task = "classification";
  return config;
}

void check_task(const RunConfig& settled) {
  const Family wanted = settled.model.family;
  const std::string& task = settled.data.task;
  if (suits(task, wanted->data)) return;
  fail("data.task = \"{}\" suits model.family = {}; \"{}\" was given, which {}; expected for it one of {}", task,
       families_for(task), wanted->name, wanted->habit, fmt::join(tasks_for(wanted->data), ", "));
}

BatchShape batch_shape(const ModelConfig& model) {
  const std::vector<InputSpec> inputs = model.family->inputs(model);
  return {model.batch, std::max<std::int64_t>(1, length_of(inputs, "tokens")), length_of(inputs, "source"),
          std::ranges::find(inputs, "noised", &InputSpec::name) != inputs.end()};
}

void require_batch(const ModelConfig& model) {
  if (model.family->batch == 0 || model.batch == model.family->batch) return;
  fail("model.batch is {}, but a model of the family {} {}: its batch is {}", model.batch, model.family->name,
       model.family->habit, model.family->batch);
}

void take_sizes(const Source& source, ModelConfig& model) {
  if (model.family->batch > 0 && model.batch == ModelConfig().batch) model.batch = model.family->batch;
  require_batch(model);
  if (source.vocabulary() > 0) {
    if (model.vocabulary == 0) model.vocabulary = source.vocabulary();
    check_vocabulary(source, model.vocabulary);
  }
  for (const auto& [name, size] : source.sizes()) {
    if (name == "vocabulary") continue;
    const std::int64_t own = size_of(model, name);
    if (own == 0) set_size(model, name, size);
    if (own != 0 && (name == "classes" ? own < size : own != size))
      fail("the data has {} {} but model.{}{} is {}", size, name, model.sizes.contains(name) ? "sizes." : "", name,
           own);
  }
}

void check_reads(const ModelConfig& model, const Source& source) {
  Batch batch;
  source.fill(0, 1, batch);
  try {
    check_batch(batch, model);
    require_targets(batch, model.family->inputs(model), 0);
  } catch (const Error& error) {
    const bool classifier = model.classes > 0 && !source.sizes().contains("classes");
    fail("{} ({}){}", error.what(), source.describe(),
         classifier ? fmt::format("; model.classes is {}, which makes the model a classifier", model.classes) : "");
  }
}

std::shared_ptr<const Source> open_data(const RunConfig& config) {
  const RunConfig settled = settle_task(config);
  check_task(settled);
  return open_source(settled.data, batch_shape(settled.model));
}

}  // namespace norma
