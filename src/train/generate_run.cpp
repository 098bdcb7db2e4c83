// Where the weights of a trained model come from: a cohort in memory, a run directory, a checkpoint.
#include <algorithm>

#include "norma/core/error.h"
#include "norma/train/cohort.h"
#include "norma/train/generate.h"
#include "norma/train/trained_run.h"

namespace norma {

TrainedModel trained_model(Cohort& cohort, int member) {
  return {cohort.config(),
          cohort.step(),
          [&cohort, member](const std::string& parameter) {
            return std::span<const std::byte>(cohort.session().bytes(parameter, member));
          },
          {}};
}

TrainedModel open_trained(const std::filesystem::path& path, int member, const SchemeLibrary& schemes) {
  const auto run = std::make_shared<const TrainedRun>(path, schemes);
  if (member < 0 || member >= run->members())
    fail("'{}' has no member {}; expected 0 to {}", path.string(), member, run->members() - 1);
  return {.config = run->config(),
          .step = run->step(),
          .weights = [run, member](const std::string& parameter) { return run->bytes(parameter, member); },
          .warnings = run->warnings()};
}

void load_model(const TrainedModel& model, const std::vector<Schedule>& schedules, Session& session) {
  for (const std::string& name : session.plan().slot_names(Role::parameter)) {
    const std::span<const std::byte> from = model.weights(name);
    const std::span<std::byte> to = session.bytes(name);
    if (from.size() != to.size()) fail("'{}' has {} bytes but the model needs {}", name, from.size(), to.size());
    std::copy(from.begin(), from.end(), to.begin());
  }
  for (const Schedule& schedule : schedules) {
    const double value = schedule.at(static_cast<double>(model.step), static_cast<double>(model.config.train.steps));
    if (session.plan().slot(schedule.input).type.dtype == DType::f32) {
      session.write<float>(schedule.input, std::array{static_cast<float>(value)});
    } else {
      session.write<double>(schedule.input, std::array{value});
    }
  }
}

}  // namespace norma
