#include "graph/lanes.h"

#include <algorithm>

#include "graph/index.h"

namespace norma {

std::vector<int> Lanes::add(int lane, std::span<const int> reads, std::span<const int> writes) {
  const int step = static_cast<int>(lane_of_.size());
  while (static_cast<int>(latest_.size()) <= lane) {
    latest_.push_back(-1);
    waited_.emplace_back();
  }
  for (std::vector<int>& others : waited_) others.resize(latest_.size(), -1);

  std::vector<int> needed(latest_.size(), -1);
  if (lane != 0) needed[0] = latest_[0];
  if (lane == 0) {
    const int far = step - most_ahead_;
    for (int behind = far; behind >= 0 && behind > far - most_ahead_; --behind) {
      if (int& wait = needed[at(lane_of_[at(behind)])]; lane_of_[at(behind)] != 0 && wait < 0) wait = behind;
    }
  }
  const auto touch = [&](int memory, bool writing) {
    std::vector<Touch>& touches = touches_[memory];
    for (const Touch& other : touches) {
      if (other.lane == lane) continue;
      const int latest = writing ? std::max(other.last_read, other.last_write) : other.last_write;
      needed[at(other.lane)] = std::max(needed[at(other.lane)], latest);
    }
    auto own = std::find_if(touches.begin(), touches.end(), [&](const Touch& t) { return t.lane == lane; });
    if (own == touches.end()) own = touches.insert(own, {.lane = lane, .last_read = -1, .last_write = -1});
    (writing ? own->last_write : own->last_read) = step;
  };
  for (const int memory : reads) touch(memory, false);
  for (const int memory : writes) touch(memory, true);

  std::vector<int> waits;
  for (std::size_t other = 0; other < needed.size(); ++other) {
    int& waited = waited_[at(lane)][other];
    if (static_cast<int>(other) == lane || needed[other] <= waited) continue;
    waited = needed[other];
    waits.push_back(waited);
  }
  latest_[at(lane)] = step;
  lane_of_.push_back(lane);
  waits_.push_back(waits);
  return waits;
}

std::vector<int> Lanes::joins() const {
  const int steps = static_cast<int>(lane_of_.size());
  std::vector<int> joins(lane_of_.size());
  std::vector<int> joined(latest_.size(), -1);  // by lane: the latest step that the main lane has waited for
  for (int step = 0; step < steps; ++step) joins[at(step)] = lane_of_[at(step)] == 0 ? step : steps;
  for (int step = 0; step < steps; ++step) {
    if (lane_of_[at(step)] != 0) continue;
    for (const int wait : waits_[at(step)]) {
      const int lane = lane_of_[at(wait)];
      for (int done = joined[at(lane)] + 1; done <= wait; ++done) {
        if (lane_of_[at(done)] == lane) joins[at(done)] = step;
      }
      joined[at(lane)] = wait;
    }
  }
  return joins;
}

}  // namespace norma
