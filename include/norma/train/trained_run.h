// A trained model on disk, as whoever speaks with it, looks into it or goes on with it reads it: the newest whole
// checkpoint of a run's directory, or one checkpoint. Nothing is used of which the checksum was not compared.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "norma/schemes/library.h"
#include "norma/store/run_directory.h"
#include "norma/train/config.h"

namespace norma {

class TrainedRun {
 public:
  // A directory, or a checkpoint file. Damaged checkpoints are passed over for the one before, with a warning each.
  // Throws Error when there is no whole one, or when it does not say which model it holds.
  // Its own scheme comes before those of `others`.
  explicit TrainedRun(const std::filesystem::path& run_or_checkpoint, const SchemeLibrary& others = {});

  const RunConfig& config() const { return config_; }  // resolved; the tokenizer is that of the run
  std::int64_t step() const { return step_; }
  int members() const { return members_; }
  const SafetensorsFile& file() const { return *file_; }
  const std::vector<std::string>& warnings() const { return warnings_; }

  // A parameter or a state of one member.
  std::span<const std::byte> bytes(const std::string& tensor, int member) const;
  bool holds(const std::string& tensor, int member) const;
  std::vector<float> to_f32(const std::string& tensor, int member) const;

 private:
  std::shared_ptr<const SafetensorsFile> file_;
  RunConfig config_;
  std::int64_t step_ = 0;
  int members_ = 1;
  std::vector<std::string> warnings_;
};

// For whoever goes on with a run: its newest whole checkpoint; none before its first one. Throws Error where there was
// one and none can be read: to begin again would cost the run its history.
CheckpointSearch checkpoint_to_resume(const RunView& run, std::int64_t checkpoint_every);

// The data of a run as its directory completes them: a SentencePiece model that the run trained is kept there, so that
// it is trained once.
DataConfig stored_data(DataConfig data, const std::filesystem::path& run);

}  // namespace norma
