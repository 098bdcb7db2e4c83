// What steps wait for when they run on several lanes, and when a side lane's work is known to be done.
//
// A step follows the earlier steps of its own lane. A step of a side lane also follows every earlier step of the main
// lane, so that memory which the main lane has given back is free for it. The main lane waits for a side lane when it
// reads what was made there, or writes what is read there, or is far ahead of it: the lanes join. Until then the side
// lane may not have begun, so what it touches lives on.
#pragma once

#include <limits>
#include <span>
#include <unordered_map>
#include <vector>

namespace norma {

class Lanes {
 public:
  // The main lane runs at most so many steps ahead of the others.
  explicit Lanes(int most_ahead = std::numeric_limits<int>::max()) : most_ahead_(most_ahead) {}

  // Appends a step that reads and writes these pieces of memory; returns the steps of other lanes that it waits for.
  std::vector<int> add(int lane, std::span<const int> reads, std::span<const int> writes);

  // By step: the first step of the main lane that runs after it: itself on the main lane, the number of steps where the
  // lanes do not join before the end.
  std::vector<int> joins() const;

 private:
  struct Touch {
    int lane;
    int last_read, last_write;  // steps; -1 = none
  };

  int most_ahead_;
  std::vector<int> lane_of_;                             // by step
  std::vector<std::vector<int>> waits_;                  // by step
  std::vector<std::vector<int>> waited_;                 // by lane and other lane: the latest step waited for, or -1
  std::vector<int> latest_;                              // by lane: its latest step, or -1
  std::unordered_map<int, std::vector<Touch>> touches_;  // by piece of memory
};

}  // namespace norma
