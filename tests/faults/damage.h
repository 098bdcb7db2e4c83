// Harm that is done to files between two starts of a command: flipped bits, cut, vanished, replaced and changed files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "trial.h"

namespace norma::faults {

struct Damage {
  std::string file;  // below the root
  std::string how;   // "flip:17.3", "cut:10", "gone", "garbage", "grown", "folder", "link"
};

// All that is done to the files of a folder: each kind once, and `flips` single bits of each file.
std::vector<Damage> damages_of(const std::filesystem::path& root, int flips, unsigned seed);

Outcome try_damage(Bench& bench, const Scenario& scenario, const State& state, const Damage& damage);

}  // namespace norma::faults
