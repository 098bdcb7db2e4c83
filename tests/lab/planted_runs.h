// Small runs that are made to end in a known way.
#pragma once

#include <atomic>
#include <filesystem>
#include <string>
#include <vector>

#include "norma/train/trainer.h"
#include "temporary_folder.h"

namespace norma::test {

// A model that trains in a second or two, with `changes` such as "train.lr=0.3".
inline RunConfig small_run(const std::vector<std::string>& changes, const SchemeLibrary& schemes = {}) {
  RunConfig config;
  for (const char* usual : {"model.layers=4", "model.width=32", "model.heads=2", "model.batch=8", "model.time=32",
                            "train.threads=1", "train.lr=0.003", "train.steps=200", "train.tensorboard=false"})
    override_config(config, usual);
  for (const std::string& change : changes) override_config(config, change, schemes);
  return config;
}

inline std::filesystem::path train_small(const TemporaryFolder& folder, const std::string& name,
                                         const std::vector<std::string>& changes, const SchemeLibrary& schemes = {}) {
  RunObserver nobody;
  const std::atomic<bool> never = false;
  const std::filesystem::path path = folder / name;
  run_training({.config = small_run(changes, schemes), .directory = path}, nobody, never);
  return path;
}

}  // namespace norma::test
