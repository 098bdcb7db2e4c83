#include "models/schedule_inputs.h"

namespace norma {

void ScheduleInputs::add(std::map<std::string, Wire>& wires, Reach reach, const Variables& numbers) {
  for (const StepSchedule& schedule : schedules_) {
    const auto depends = [&](const char* name) { return schedule.names.contains(name); };
    const Reach own = depends("k") ? Reach::sublayer : depends("l") ? Reach::layer : Reach::stack;
    if (own != reach) continue;
    const bool shared = reach == Reach::stack && !depends("n") && !depends("N") && !depends("M");
    const std::string input = "schedule." + (shared ? "" : graph_.full_name("")) + schedule.name;
    Wire wire = graph_.find(input);
    if (!wire) {
      const auto root = graph_.scope_at("");
      wire = graph_.input(input, {{1}, dtype_});
      made_.push_back({.input = input, .name = schedule.name, .chain = schedule.chain, .numbers = numbers});
    }
    wires[schedule.name] = wire;
  }
}

}  // namespace norma
