#include "lab/sweep/cohorts.h"

#include <algorithm>
#include <map>

#include "norma/core/arena.h"
#include "norma/core/error.h"
#include "norma/core/names.h"
#include "norma/train/data.h"

namespace norma {
namespace {

// Sessions for training and evaluation live side by side, and others use the machine too.
constexpr std::int64_t kShareOfMemory = 2;

// A plan with dropout differs from one without; zeros, also those of clipping, stay among themselves, so that a member
// computes exactly what it would alone.
std::string program_key(RunConfig config) {
  TrainConfig& train = config.train;
  const char* clip = train.clip > 0 ? "clip" : "free";
  const char* dropout = train.dropout > 0 ? "dropout" : "dense";
  train.lr = train.clip = train.dropout = 0;
  train.schedule.warmup = train.seed = train.data_seed = train.threads = 0;
  train.optimiser.beta1 = train.optimiser.beta2 = train.optimiser.eps = train.optimiser.weight_decay = 0;
  return fmt::format("{:016x}-{}-{}", hash_name(print_config(config)), clip, dropout);
}

}  // namespace

std::vector<SweepGroup> group_cells(const std::vector<SweepCell>& cells) {
  std::vector<SweepGroup> groups;
  std::map<std::string, std::size_t> place;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string key = program_key(cells[i].config);
    const auto [found, fresh] = place.emplace(key, groups.size());
    if (fresh) groups.push_back({key, {}});
    groups[found->second].cells.push_back(i);
  }
  return groups;
}

RunConfig cohort_config(const std::vector<const SweepCell*>& cells) {
  NORMA_ASSERT(!cells.empty());
  RunConfig config = cells[0]->config;
  config.train.tensorboard = false;  // the members' own directories have it
  if (cells.size() == 1) return config;
  MembersConfig& m = config.members;
  for (const SweepCell* cell : cells) {
    const TrainConfig& one = cell->config.train;
    m.lr.push_back(one.lr);
    m.warmup.push_back(one.schedule.warmup);
    m.seed.push_back(one.seed);
    m.data_seed.push_back(one.data_seed);
    m.weight_decay.push_back(one.optimiser.weight_decay);
    m.beta1.push_back(one.optimiser.beta1);
    m.beta2.push_back(one.optimiser.beta2);
    m.eps.push_back(one.optimiser.eps);
    m.clip.push_back(one.clip);
    m.dropout.push_back(one.dropout);
  }
  return config;
}

std::int64_t memory_for_cohorts(Device device) { return available_memory(device) / kShareOfMemory; }

std::int64_t member_bytes(const RunConfig& config) {
  const auto source = open_data(config);
  const RunConfig resolved = resolve_config(config, *source);
  const TrainingStep step = build_training_step(resolved.model, step_options(resolved));
  const std::int64_t available = available_memory(config.train.device);
  const std::int64_t bytes = std::max<std::int64_t>(1, step.plan->member_bytes());
  if (bytes > available)
    fail("one model of {} layers and width {} needs {} MiB but {} MiB are available", resolved.model.layers,
         resolved.model.width, bytes >> 20, available >> 20);
  return bytes;
}

CohortLimits cohort_limits(const std::vector<std::int64_t>& bytes, int threads, std::int64_t wanted,
                           std::int64_t memory, std::int64_t useful) {
  CohortLimits limits;
  const std::int64_t largest = bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
  const auto open = std::count_if(bytes.begin(), bytes.end(), [](std::int64_t one) { return one > 0; });
  const std::int64_t fitting = largest > 0 ? std::max<std::int64_t>(1, memory / largest) : 1;
  limits.at_once = static_cast<int>(std::clamp<std::int64_t>(open, 1, std::min<std::int64_t>(threads, fitting)));
  for (const std::int64_t one : bytes) {
    const std::int64_t room = one > 0 ? std::max<std::int64_t>(1, memory / limits.at_once / one) : 1;
    limits.most_members.push_back(std::min(room, wanted > 0 ? wanted : useful));
  }
  if (limits.at_once == open) limits.parts = std::max(1, threads / limits.at_once);
  return limits;
}

std::int64_t useful_members(Device device, int threads) {
  constexpr std::int64_t kOnGpu = 256;
  return resolve(device) == Device::cuda ? kOnGpu : std::max<std::int64_t>(8, std::int64_t{4} * threads);
}

double work_of_step(const RunConfig& config) {
  ModelConfig model = config.model;
  if (model.vocabulary == 0) model.vocabulary = 64;
  // Whoever reads images or graphs has sizes that only the data know.
  if (!model.family->sizes.empty()) model = resolve_config(config, *open_data(config)).model;
  return model_flops(model) * static_cast<double>(config.train.accumulate);
}

std::vector<std::size_t> by_falling_rate(const std::vector<SweepCell>& all, std::vector<std::size_t> cells) {
  std::stable_sort(cells.begin(), cells.end(),
                   [&](std::size_t a, std::size_t b) { return all[a].config.train.lr > all[b].config.train.lr; });
  return cells;
}

std::vector<GroupPart> parts_of(const std::vector<SweepCell>& all, const std::vector<std::size_t>& open,
                                std::int64_t most_members, int parts) {
  const auto count =
      std::clamp<std::int64_t>(parts, 1, std::max<std::int64_t>(1, std::min(most_members, std::ssize(open))));
  std::vector<GroupPart> dealt(static_cast<std::size_t>(count), {.cells = {}, .most_members = most_members / count});
  std::size_t next = 0;
  for (const std::size_t cell : by_falling_rate(all, open)) dealt[next++ % dealt.size()].cells.push_back(cell);
  return dealt;
}

std::vector<std::int64_t> even_parts(std::int64_t count, std::int64_t most) {
  const std::int64_t parts = (count + most - 1) / most;
  std::vector<std::int64_t> sizes;
  for (std::int64_t i = 0; i < parts; ++i) sizes.push_back(count * (i + 1) / parts - count * i / parts);
  return sizes;
}

}  // namespace norma
