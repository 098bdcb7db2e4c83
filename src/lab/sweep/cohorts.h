// Which cells can train as members of one program, and how many at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "norma/lab/sweep.h"

namespace norma {

// Cells that differ only in what is data of a member: learning rate, warmup, seeds, decay, betas, eps, clip, dropout.
struct SweepGroup {
  std::string key;                 // stable name of the program
  std::vector<std::size_t> cells;  // indices
};

std::vector<SweepGroup> group_cells(const std::vector<SweepCell>& cells);

// The configuration of a cohort of these cells of one group.
RunConfig cohort_config(const std::vector<const SweepCell*>& cells);

// The memory of one member of a program. Builds the plan and throws Error when the model is impossible or does not fit.
std::int64_t member_bytes(const RunConfig& config);

// How many groups train side by side, and how many members a cohort of each may have, so that all cohorts at once take
// no more than `memory`, or one member each. `bytes` of a member by group; 0: it has nothing to train. `wanted`: of one
// cohort; 0: as many as are useful.
struct CohortLimits {
  int at_once = 1;
  std::vector<std::int64_t> most_members;
  int parts = 1;  // of one group that may train side by side: how many threads there are for each group
};
CohortLimits cohort_limits(const std::vector<std::int64_t>& bytes, int threads, std::int64_t wanted,
                           std::int64_t memory, std::int64_t useful);
std::int64_t memory_for_cohorts(Device device);  // that a sweep may take of it
// More members than a few for each core, or than fill a GPU, bring no speed, only memory and coarser checkpoints.
std::int64_t useful_members(Device device, int threads);

// The operations of one step of one member. Work is only compared with work; a vocabulary that the data will name is
// taken as small.
double work_of_step(const RunConfig& config);

// High rates diverge soonest, so that their places come free while others still wait.
std::vector<std::size_t> by_falling_rate(const std::vector<SweepCell>& all, std::vector<std::size_t> cells);

// The open cells of a group as parts, each of which trains in cohorts of its own. Threads that share a cohort wait for
// each other after every step and for what one of them does between steps; a cohort with one thread waits for nobody.
// The rates of a group are dealt out, since high ones end soonest.
struct GroupPart {
  std::vector<std::size_t> cells;
  std::int64_t most_members = 1;
};
std::vector<GroupPart> parts_of(const std::vector<SweepCell>& all, const std::vector<std::size_t>& open,
                                std::int64_t most_members, int parts);

// Cuts `count` into as few parts as possible, none larger than `most`, all nearly alike.
std::vector<std::int64_t> even_parts(std::int64_t count, std::int64_t most);

}  // namespace norma
