// Where the weights of a trained model come from: a cohort in memory, a run directory, a checkpoint.
#include <algorithm>

#include "norma/core/error.h"
#include "norma/train/cohort.h"
#include "norma/train/generate.h"
#include "norma/train/step.h"
#include "norma/train/trained_run.h"

namespace norma {

TrainedModel trained_model(Cohort& cohort, int member) {
  const auto bytes = std::make_shared<std::vector<std::byte>>();
  return {cohort.config(),
          cohort.step(),
          [&cohort, member, bytes](const std::string& parameter) {
            const Handle mean = cohort.session().find(ema_name(parameter));
            const Handle tensor = mean ? mean : cohort.session().handle(parameter);
            bytes->resize(tensor.bytes());
            cohort.session().read(tensor, member, *bytes);
            return std::span<const std::byte>(*bytes);
          },
          {}};
}

TrainedModel open_trained(const std::filesystem::path& path, int member, const SchemeLibrary& schemes) {
  const auto run = std::make_shared<const TrainedRun>(path, schemes);
  if (member < 0 || member >= run->members())
    fail("'{}' has no member {}; expected 0 to {}", path.string(), member, run->members() - 1);
  return {.config = run->config(),
          .step = run->step(),
          .weights =
              [run, member](const std::string& parameter) {
                const std::string mean = ema_name(parameter);
                return run->bytes(run->holds(mean, member) ? mean : parameter, member);
              },
          .warnings = run->warnings()};
}

void load_model(const TrainedModel& model, const std::vector<Schedule>& schedules, Session& session) {
  std::vector<std::string> names = session.plan().slot_names(Role::parameter);
  for (std::string& statistic : session.plan().slot_names(Role::state)) names.push_back(std::move(statistic));
  for (const std::string& name : names) {
    const std::span<const std::byte> from = model.weights(name);
    const Handle to = session.handle(name);
    if (from.size() != to.bytes())
      fail(
          "the run's weight '{}' has {} bytes, but this model needs {}: the run is of another model, or of another "
          "version of norma",
          name, from.size(), to.bytes());
    session.stage(to, 0, from);
  }
  for (const Schedule& schedule : schedules) {
    const double value = schedule.at(static_cast<double>(model.step), static_cast<double>(model.config.train.steps));
    session.stage_number(schedule.input, 0, value);
  }
}

}  // namespace norma
