// Where the weights of a trained model come from: a cohort in memory, a run directory, a checkpoint.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "norma/store/run_directory.h"
#include "norma/train/cohort.h"
#include "norma/train/generate.h"
#include "norma/train/run_schemes.h"
#include "norma/train/trainer.h"

namespace norma {
namespace {

namespace fs = std::filesystem;

SafetensorsFile open_checkpoint(const fs::path& run) {
  std::error_code error;
  if (!fs::exists(run, error)) fail("there is no run '{}'", run.string());
  if (!fs::is_directory(run, error)) {
    SafetensorsFile file(run);
    if (file.has_checksum()) file.verify_checksum();
    return file;
  }
  const RunView view(run);
  if (!view.exists()) fail("'{}' holds no run: there is no config.toml", run.string());
  CheckpointSearch search = view.newest_checkpoint();
  if (search.newest) return std::move(search.newest->file);
  fail("'{}' holds no checkpoint yet{}{}", run.string(), search.warnings.empty() ? "" : ": ",
       fmt::join(search.warnings, "; "));
}

std::int64_t step_of(const SafetensorsFile& file) {
  const auto state = file.metadata().find("norma.training");
  if (state == file.metadata().end()) return 0;
  const nlohmann::json parsed = parse_json(state->second);
  if (!parsed.is_object() || !parsed.contains("step") || !parsed["step"].is_number_integer())
    fail("'{}' has a damaged training state", file.path().string());
  return parsed["step"];
}

}  // namespace

TrainedModel trained_model(Cohort& cohort, int member) {
  const auto bytes = std::make_shared<std::vector<std::byte>>();
  return {cohort.config(), cohort.step(), [&cohort, member, bytes](const std::string& parameter) {
            const Handle tensor = cohort.session().handle(parameter);
            bytes->resize(tensor.bytes());
            cohort.session().read(tensor, member, *bytes);
            return std::span<const std::byte>(*bytes);
          }};
}

TrainedModel open_trained(const fs::path& run, int member, const SchemeLibrary& schemes) {
  const auto file = std::make_shared<const SafetensorsFile>(open_checkpoint(run));
  const fs::path folder = fs::is_directory(run) ? run : fs::absolute(run).parent_path().parent_path();
  const auto config = file->metadata().find("norma.config");
  if (config == file->metadata().end())
    fail("'{}' does not say what model its weights belong to: its metadata have no norma.config",
         file->path().string());
  TrainedModel model{
      parse_config(config->second, file->path().string(), library_of_run(folder, schemes)), step_of(*file), {}};
  const int members = static_cast<int>(member_configs(model.config).size());
  if (member < 0 || member >= members)
    fail("'{}' has no member {}; expected 0 to {}", run.string(), member, members - 1);
  model.config.data = stored_data(model.config.data, folder);
  model.weights = [file, member, members](const std::string& parameter) {
    return file->bytes(checkpoint_name(parameter, member, members));
  };
  return model;
}

void load_model(const TrainedModel& model, const std::vector<Schedule>& schedules, Session& session) {
  for (const std::string& name : session.plan().slot_names(Role::parameter)) {
    const std::span<const std::byte> from = model.weights(name);
    const Handle to = session.handle(name);
    if (from.size() != to.bytes()) fail("'{}' has {} bytes but the model needs {}", name, from.size(), to.bytes());
    session.stage(to, 0, from);
  }
  for (const Schedule& schedule : schedules) {
    const double value = schedule.at(static_cast<double>(model.step), static_cast<double>(model.config.train.steps));
    session.stage_number(schedule.input, 0, value);
  }
}

}  // namespace norma
