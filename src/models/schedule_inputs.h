// Inputs for the schedules of a scheme, one for each place that its value depends on.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "norma/graph/graph.h"
#include "norma/models/schedule.h"
#include "norma/schemes/place.h"

namespace norma {

class ScheduleInputs {
 public:
  enum class Reach { stack, layer, sublayer };  // what the value of a schedule depends on

  ScheduleInputs(Graph& graph, DType dtype, std::vector<StepSchedule> schedules)
      : graph_(graph), dtype_(dtype), schedules_(std::move(schedules)) {}

  // Adds, by name, the schedules that depend on just this much of the open scope's place. The two stacks of an
  // encoder-decoder share one where nothing tells them apart.
  void add(std::map<std::string, Wire>& wires, Reach reach, const Variables& numbers);

  std::vector<Schedule> take() { return std::move(made_); }

 private:
  Graph& graph_;
  DType dtype_;
  std::vector<StepSchedule> schedules_;
  std::vector<Schedule> made_;
};

}  // namespace norma
