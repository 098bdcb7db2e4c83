#include "norma/train/data.h"

#include <algorithm>
#include <array>

#include "norma/core/error.h"

namespace norma {
namespace {

struct FamilyReading {
  Family family;
  ReadingManner reading;
  const char* name;
  const char* habit;
};

constexpr std::array<FamilyReading, 3> kReadings = {
    {{Family::decoder, ReadingManner::onward, "decoder", "reads one row from left to right"},
     {Family::encoder, ReadingManner::whole, "encoder", "reads a row all at once and would see each next token"},
     {Family::encoder_decoder, ReadingManner::paired, "encoder_decoder", "reads one side and says the other"}}};

const FamilyReading& reading_of(Family family) {
  const auto found =
      std::find_if(kReadings.begin(), kReadings.end(), [&](const FamilyReading& one) { return one.family == family; });
  NORMA_ASSERT(found != kReadings.end());
  return *found;
}

bool suits(const std::string& task, ReadingManner reading) {
  const std::vector<std::string> all = tasks_for(reading);
  return std::find(all.begin(), all.end(), task) != all.end();
}

std::string families_for(const std::string& task) {
  std::string names;
  for (const FamilyReading& one : kReadings) {
    if (suits(task, one.reading)) names += fmt::format("{}\"{}\"", names.empty() ? "" : " or ", one.name);
  }
  return names;
}

}  // namespace

RunConfig settle_task(RunConfig config) {
  if (config.data.task != kFamilyTask) return config;
  // Whoever names a file wants to learn it.
  const bool file = !config.data.path.empty();
  const std::vector<std::string> tasks = tasks_for(reading_of(config.model.family).reading);
  config.data.task = *std::ranges::find_if(tasks, [&](const std::string& task) { return reads_files(task) == file; });
  return config;
}

void check_task(const RunConfig& settled) {
  const FamilyReading& wanted = reading_of(settled.model.family);
  const std::string& task = settled.data.task;
  if (suits(task, wanted.reading)) return;
  fail("data.task = \"{}\" suits model.family = {}; \"{}\" was given, which {}; expected for it one of {}", task,
       families_for(task), wanted.name, wanted.habit, fmt::join(tasks_for(wanted.reading), ", "));
}

BatchShape batch_shape(const ModelConfig& model) {
  const std::int64_t source_time = model.source_time > 0 ? model.source_time : model.time;
  return {model.batch, model.time, model.family == Family::encoder_decoder ? source_time : 0};
}

std::shared_ptr<const Source> open_data(const RunConfig& config) {
  const RunConfig settled = settle_task(config);
  check_task(settled);
  return open_source(settled.data, batch_shape(settled.model));
}

}  // namespace norma
