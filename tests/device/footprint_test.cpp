// Phases touch what they say and nothing else, in training steps of several kinds: what their levels rest on.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>

#include "device/cpu/levels.h"
#include "device/touches.h"
#include "norma/core/arena.h"
#include "norma/device/cpu/backend.h"
#include "norma/train/step.h"

namespace norma {
namespace {

using test::Bytes;
using test::Touches;

// A member's memory, filled with numbers that all kernels can work on.
class Memory {
 public:
  explicit Memory(const Plan& plan) : bytes_(plan.member_bytes()), arena_(bytes_) {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> numbers(0.1f, 0.9f);
    for (std::size_t id = 0; id < plan.values().size(); ++id) {
      const Value& value = plan.values()[id];
      if (value.role == Role::computed) continue;
      std::byte* const to = data() + plan.offset_of(static_cast<int>(id));
      if (value.type.dtype == DType::f32) {
        for (std::int64_t i = 0; i < value.type.shape.elements(); ++i)
          reinterpret_cast<float*>(to)[i] = numbers(random);
      } else if (value.type.dtype == DType::i32) {
        for (std::int64_t i = 0; i < value.type.shape.elements(); ++i)
          reinterpret_cast<std::int32_t*>(to)[i] = static_cast<std::int32_t>(random() % 7);
      }
    }
  }
  Memory(const Memory& other) : bytes_(other.bytes_), arena_(bytes_) {
    std::memcpy(data(), other.data(), static_cast<std::size_t>(bytes_));
  }
  Memory& operator=(const Memory&) = delete;

  std::byte* data() const { return const_cast<std::byte*>(arena_.data()); }  // a kernel's to write
  std::int64_t bytes() const { return bytes_; }
  bool same(const Memory& other, Bytes range) const {
    return std::memcmp(data() + range.begin, other.data() + range.begin,
                       static_cast<std::size_t>(range.end - range.begin)) == 0;
  }

 private:
  std::int64_t bytes_;
  Arena arena_;
};

void run(const Step& step, const Phase& phase, const Memory& memory, std::byte* worker, std::int64_t begin,
         std::int64_t end) {
  const Call call{.base = memory.data(),
                  .offsets = step.offsets.data(),
                  .inputs = step.inputs,
                  .scratch = memory.data() + step.scratch,
                  .worker_scratch = worker};
  phase.run_range(call, begin, end);
}

// The rest of a member's memory.
std::vector<Bytes> all_but(std::int64_t bytes, std::initializer_list<const std::vector<Bytes>*> parts) {
  std::vector<Bytes> taken;
  for (const auto* part : parts) taken.insert(taken.end(), part->begin(), part->end());
  std::ranges::sort(taken, {}, &Bytes::begin);
  std::vector<Bytes> rest;
  std::int64_t at = 0;
  for (const Bytes& range : taken) {
    if (range.begin > at) rest.push_back({at, range.begin});
    at = std::max(at, range.end);
  }
  if (at < bytes) rest.push_back({at, bytes});
  return rest;
}

enum class Fault { none, writes_elsewhere, reads_elsewhere };

// Runs one phase, then once more where all that it may not read is NaN.
Fault fault_of(const Plan& plan, const Step& step, const std::vector<Phase>& phases, std::size_t index,
               const Memory& memory, std::byte* worker) {
  const Phase& phase = phases[index];
  const Touches touches = test::touches_of(plan, step, phases, index);
  const Memory before(memory), elsewhere(memory);
  run(step, phase, memory, worker, 0, phase.tiles);
  for (const Bytes& range : all_but(memory.bytes(), {&touches.outputs, &touches.scratch})) {
    if (!memory.same(before, range)) return Fault::writes_elsewhere;
  }
  // What a phase alone writes it has no reason to read; others may add to what earlier phases left.
  static const std::vector<Bytes> nothing;
  const auto* read_back = phase.touches ? &nothing : &touches.outputs;
  for (const Bytes& range : all_but(memory.bytes(), {&touches.inputs, &touches.scratch, read_back}))
    std::memset(elsewhere.data() + range.begin, 0xFF, static_cast<std::size_t>(range.end - range.begin));
  run(step, phase, elsewhere, worker, 0, phase.tiles);
  for (const auto* written : {&touches.outputs, &touches.scratch}) {
    for (const Bytes& range : *written) {
      if (!memory.same(elsewhere, range)) return Fault::reads_elsewhere;
    }
  }
  return Fault::none;
}

struct Case {
  const char* name;
  ModelConfig config;
};

ModelConfig small(const char* scheme, NormKind norm) {
  return {
      .layers = 2, .width = 32, .heads = 2, .vocabulary = 50, .batch = 4, .time = 32, .scheme = scheme, .norm = norm};
}

std::vector<Case> cases() {
  std::vector<Case> all = {{"layer", small("pre", NormKind::layer)},
                           {"rms", small("post", NormKind::rms)},
                           {"dyt", small("pre", NormKind::dyt)}};
  all.push_back({"tied", small("pre", NormKind::layer)});
  all.back().config.tied = true;
  // Wide enough for weights that are packed, and products of several tiles.
  all.push_back({"wide", small("pre", NormKind::layer)});
  all.back().config.width = 128;
  all.back().config.time = 64;
  all.push_back({"group", small("resnet_v1", NormKind::group)});
  all.back().config.family = "resnet";
  all.back().config.classes = 7;
  all.back().config.sizes = {{"image_height", 8}, {"image_width", 8}, {"image_channels", 3}, {"stages", 1}};
  return all;
}

class Footprint : public testing::TestWithParam<Case> {};

TEST_P(Footprint, PhasesTouchWhatTheySay) {
  const TrainingStep training = build_training_step(GetParam().config);
  const Plan& plan = *training.plan;
  const Memory memory(plan);
  Arena worker(worker_bytes(plan) + kArenaAlignment);
  int named = 0;
  for (const Step& step : plan.steps()) {
    const std::vector<Phase>& phases = phases_of(step);
    for (std::size_t phase = 0; phase < phases.size(); ++phase) {
      named += phases[phase].touches.has_value() ? 1 : 0;
      ASSERT_EQ(fault_of(plan, step, phases, phase, memory, worker.data()), Fault::none)
          << plan.node_name(step.node) << ", phase " << phase;
    }
  }
  EXPECT_GT(named, 5);
}

// The check itself: every phase that names an output or an input is caught when it names one too few.
TEST_P(Footprint, AWrongClaimIsFound) {
  const TrainingStep training = build_training_step(GetParam().config);
  const Plan& plan = *training.plan;
  const Memory memory(plan);
  Arena worker(worker_bytes(plan) + kArenaAlignment);
  int outputs = 0, inputs = 0, prepares = 0;
  for (const Step& step : plan.steps()) {
    const std::vector<Phase>& phases = phases_of(step);
    for (std::size_t phase = 0; phase < phases.size(); ++phase) {
      const Memory before(memory);
      if (phases[phase].touches) {
        prepares += phases[phase].touches->outputs.empty() ? 1 : 0;
        for (const auto list : {&Touched::inputs, &Touched::outputs}) {
          std::vector<Phase> wrong = phases;
          if (((*wrong[phase].touches).*list).empty()) continue;
          ((*wrong[phase].touches).*list).clear();
          const Fault fault = fault_of(plan, step, wrong, phase, Memory(before), worker.data());
          (list == &Touched::inputs ? inputs : outputs) += fault == Fault::none ? 0 : 1;
        }
      }
      run(step, phases[phase], memory, worker.data(), 0, phases[phase].tiles);
    }
  }
  EXPECT_GT(outputs, 5);
  EXPECT_GE(inputs, prepares);
}

// Tiles of a level in any order give the bits of the plan's own order.
TEST_P(Footprint, TilesOfALevelMayRunInAnyOrder) {
  const TrainingStep training = build_training_step(GetParam().config);
  const Plan& plan = *training.plan;
  Arena worker(worker_bytes(plan) + kArenaAlignment);
  const Memory start(plan), expected(start);
  for (const Step& step : plan.steps()) {
    for (const Phase& phase : phases_of(step)) run(step, phase, expected, worker.data(), 0, phase.tiles);
  }
  std::mt19937 random(3);
  for (int round = 0; round < 3; ++round) {
    const Memory memory(start);
    for (const Level& level : dependency_levels(plan, Watching::yes)) {
      std::vector<std::pair<const Task*, std::int64_t>> tiles;
      for (const Task& task : level) {
        for (std::int64_t tile = 0; tile < task.tiles; ++tile) tiles.emplace_back(&task, tile);
      }
      std::shuffle(tiles.begin(), tiles.end(), random);
      for (const auto& [task, tile] : tiles) {
        const Step& step = plan.steps()[static_cast<std::size_t>(task->step)];
        run(step, phases_of(step)[static_cast<std::size_t>(task->phase)], memory, worker.data(), tile, tile + 1);
      }
    }
    EXPECT_TRUE(memory.same(expected, {0, plan.persistent_bytes()}));
    for (const std::string& output : plan.slot_names(Role::computed)) {
      const Slot& slot = plan.slot(output);
      EXPECT_TRUE(memory.same(expected, {slot.offset, slot.offset + slot.type.bytes()})) << output;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Steps, Footprint, testing::ValuesIn(cases()),
                         [](const auto& one) { return std::string(one.param.name); });

std::shared_ptr<const Plan> pre_ln(std::int64_t layers, std::int64_t width) {
  ModelConfig config = small("pre", NormKind::layer);
  config.layers = layers;
  config.width = width;
  config.time = 64;
  return build_training_step(config, {.probes = false}).plan;
}

// Seven levels forward and eight back: everything that nobody waits for stands beside something else.
TEST(LevelsOf, ALayerTakesFifteen) {
  const auto levels = [](std::int64_t layers) { return dependency_levels(*pre_ln(layers, 128), Watching::no).size(); };
  EXPECT_LE(levels(5) - levels(4), 15u);
}

// Nothing but packing, which is ahead of its time anyway, waits for memory that is a neighbour's scratch.
TEST(LevelsOf, ScratchOfNeighboursIsNotWaitedFor) {
  const auto plan = pre_ln(6, 32);
  struct Placed {
    Task task;
    int level;
    Touches touches;  // without scratch
  };
  std::vector<Placed> placed;
  const std::vector<Level> levels = dependency_levels(*plan, Watching::no);
  for (std::size_t level = 0; level < levels.size(); ++level) {
    for (const Task& task : levels[level]) {
      placed.push_back({task, static_cast<int>(level), test::touches_of(*plan, task)});
      placed.back().touches.scratch.clear();
    }
  }
  for (const Placed& later : placed) {
    const Step& step = plan->steps()[static_cast<std::size_t>(later.task.step)];
    const std::optional<Touched>& touches = phases_of(step)[static_cast<std::size_t>(later.task.phase)].touches;
    if (touches && touches->outputs.empty()) continue;
    int before = -1;
    for (const Placed& earlier : placed) {
      const bool follows = earlier.task.step == later.task.step && earlier.task.phase < later.task.phase;
      if (follows || (earlier.task.step < later.task.step && conflict(earlier.touches, later.touches)))
        before = std::max(before, earlier.level);
    }
    EXPECT_EQ(later.level, before + 1) << plan->node_name(step.node) << ", phase " << later.task.phase;
  }
}

}  // namespace
}  // namespace norma
