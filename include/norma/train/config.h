// Everything a run is made of, as one table of named values: TOML in, the same TOML out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "norma/backends/device.h"
#include "norma/data/config.h"
#include "norma/graph/plan.h"
#include "norma/models/model.h"
#include "norma/train/groups.h"
#include "norma/train/optimiser.h"
#include "norma/train/schedule.h"

namespace norma {

// What a run does about a model that sees what it is to predict (causality.h).
enum class Leaks { refuse, allow };

struct TrainConfig {
  std::int64_t steps = 1000;
  double lr = 1e-3;  // the peak
  ScheduleConfig schedule = {};
  OptimiserConfig optimiser = {};
  bool decay_vectors = false;   // whether biases, norm gains and learned vectors decay
  double clip = 1;              // on the norm of all gradients of a member; 0: none
  std::int64_t accumulate = 1;  // batches per step
  double dropout = 0;
  double smoothing = 0;         // of labels
  double ema = 0;               // decay of a moving mean of the weights, which evaluation and sampling use; 0: none
  std::int64_t seed = 1;        // of initial weights and dropout
  std::int64_t data_seed = 1;   // of the order of the data
  std::int64_t log_every = 10;  // steps
  std::int64_t evaluate_every = 100;
  std::int64_t checkpoint_every = 200;
  std::int64_t keep_checkpoints = 2;
  std::int64_t recompute_every = 0;  // layers per recomputation segment; 0: keep all activations
  Keep keep = Keep::all;             // lean: what is cheap to compute again goes, layer by layer
  std::int64_t threads = 0;          // 0: all cores
  Device device = Device::automatic;
  Precision precision = Precision::f32;
  bool probes = true;
  bool tensorboard = true;
  Leaks leaks = Leaks::refuse;
};

// What a run does about a loss that goes astray. The first row finds it, the second acts on it.
enum class Recovery { none, skip, lower_lr, roll_back };

struct DetectConfig {
  std::int64_t window = 25;     // steps of the rolling median
  double spike = 1;             // nats above the median; 0: off
  double rise = 0.5;            // nats of the median above the first loss; 0: off
  std::int64_t patience = 100;  // steps that a spike may last before it counts as divergence
  Recovery recovery = Recovery::none;
  double lr_factor = 0.5;            // lower_lr, roll_back: on the learning rate
  std::int64_t most_actions = 10;    // after so many the member is frozen
  std::int64_t snapshot_every = 50;  // steps, for roll_back
};

std::string_view name_of(Recovery recovery);

// What may differ between members. Lists of one length, or of one value for all; empty: as in [train].
struct MembersConfig {
  std::vector<std::int64_t> seed, data_seed, warmup;
  std::vector<double> lr, weight_decay, beta1, beta2, eps, clip, dropout;
};

struct RunConfig {
  ModelConfig model = {};
  DataConfig data = {};
  TrainConfig train = {};
  DetectConfig detect = {};
  MembersConfig members = {};
  GroupRules groups = {};

  RunConfig();
};

// That the plans of a run are made for. Throws Error where the device was asked for and cannot be used.
const Backend& device_backend(const RunConfig& config);

// One key of the table.
struct ConfigKey {
  std::string name;   // "train.lr"
  std::string table;  // "train"
  std::string value;  // as TOML
  std::string help;
};

// Reads TOML text; `origin` names it in errors. Throws Error naming key, value and what was expected, and for an
// unknown key the nearest known one. The scheme is resolved by `schemes`.
RunConfig parse_config(std::string_view toml, std::string_view origin, const SchemeLibrary& schemes = {});
RunConfig read_config(const std::filesystem::path& path, const SchemeLibrary& schemes = {});

// "train.lr=3e-4": the value as TOML, or as bare text where TOML would need quotes.
void override_config(RunConfig& config, std::string_view assignment, const SchemeLibrary& schemes = {});

// Whether a configuration can have this key: one of config_keys, or an entry of a table of free names.
bool is_config_key(std::string_view key);

// All keys in order, with their values and what they mean.
std::vector<ConfigKey> config_keys(const RunConfig& config);
// The same as TOML text; parse_config gives back the same configuration.
std::string print_config(const RunConfig& config, bool with_help = false);

// The settings of each member, at least one. Throws Error when lists differ in length.
std::vector<TrainConfig> member_configs(const RunConfig& config);

}  // namespace norma
