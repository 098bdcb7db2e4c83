// Gives the values of a compiled formula registers.
#pragma once

#include <string>
#include <vector>

#include "theory/program.h"

namespace norma {

// Instructions over values, each made once. The first values are the streams as they come, then the memory.
struct TheoryValues {
  std::vector<TheoryInstruction> instructions = {};
  int count = 0;
  std::vector<int> ends = {};    // what each stream's register holds afterwards
  std::vector<int> kept = {};    // read after the last instruction as well
  bool memory = false;           // stays as it is
  std::vector<bool> alone = {};  // by stream register: nothing reads it
};

class TheoryRegisters {
 public:
  // Throws NotPredictedError, naming the scheme.
  TheoryRegisters(const std::string& scheme, TheoryValues values);

  TheoryProgram take() { return std::move(program_); }
  int of(int value) const { return register_of_[static_cast<std::size_t>(value)]; }

 private:
  void drop_unread();
  void check_repeated() const;
  void assign();
  int free_register(int value, int at) const;
  void move_ends();
  void collect_factors();
  NotPredictedError not_predicted(const std::string& what) const;

  const std::string& scheme_;
  TheoryValues values_;
  std::vector<TheoryInstruction> kept_;
  std::vector<int> order_;        // of the instructions that are kept, where they stood before
  std::vector<int> last_use_;     // by value
  std::vector<int> register_of_;  // by value
  std::vector<int> free_at_;      // by register: the last instruction that reads what it holds
  std::size_t held_ = 0;          // registers of streams and memory
  TheoryProgram program_;
};

}  // namespace norma
