// What tests of sweeps share: a small grid to be filled in, and a sweep that nobody watches.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "norma/lab/sweep.h"
#include "norma/store/run_directory.h"

namespace norma::test {

inline SweepConfig small_sweep(std::int64_t steps = 30) {
  SweepConfig config;
  for (const char* setting : {"model.layers=2", "model.width=16", "model.heads=2", "model.batch=4", "model.time=12",
                              "train.checkpoint_every=7", "train.evaluate_every=10", "train.log_every=5",
                              "train.dropout=0.1", "train.threads=1"})
    override_sweep(config, setting);
  override_sweep(config, "train.steps=" + std::to_string(steps));
  return config;
}

inline SweepResult sweep(const SweepConfig& config, const std::filesystem::path& directory) {
  SweepObserver observer;
  const std::atomic<bool> stop{false};
  return run_sweep({.config = config, .directory = directory}, observer, stop);
}

// The members' last checkpoints are the same, bit for bit.
inline void expect_same_bits(const std::filesystem::path& sweep, const std::filesystem::path& other,
                             const std::string& id) {
  const SafetensorsFile one = RunView(sweep / "runs" / id).newest_checkpoint().newest->file;
  const SafetensorsFile two = RunView(other / "runs" / id).newest_checkpoint().newest->file;
  EXPECT_EQ(one.metadata(), two.metadata()) << id;
  ASSERT_EQ(one.tensors().size(), two.tensors().size());
  for (const TensorInfo& info : one.tensors()) {
    const auto a = one.bytes(info.name), b = two.bytes(info.name);
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end())) << id << " " << info.name;
  }
}

}  // namespace norma::test
