// A formula compiled for the theory: a few instructions over registers, one program per wiring. Registers 0, 1, ...
// hold x and the other streams.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "norma/norms/norm.h"
#include "norma/schemes/evaluate.h"
#include "norma/schemes/place.h"
#include "norma/schemes/scheme.h"
#include "theory/moments.h"
#include "theory/number.h"
#include "theory/theory.h"

namespace norma {

constexpr int kMostCopies = 8;

// A number known at a place: once and for all, or an expression of l, k and what is found on the way (values that are
// profiled, sizes of stacks that grow).
struct Coefficient {
  double value = 0;
  ExpressionPtr expression = nullptr;                  // null: value
  mutable std::shared_ptr<NumberCode> code = nullptr;  // of the expression, from its first use on
};

struct TheoryInstruction {
  enum class Op { combine, norm, tanh, relu, branch, stop };
  struct Term {
    int from = 0;
    Coefficient coefficient = {};
  };
  Op op = Op::combine;
  int to = 0;
  std::vector<Term> terms = {};  // combine: any number; otherwise one, with coefficient 1; cross: then the memory
  double eps = 0;                // norm
  bool centres = false;          // norm: removes the mean
  bool removes_shared = false;   // norm: over tokens, for each channel; what they share is the mean that it removes
  double slope = 1;              // tanh: tanh(slope*x)
  const BranchKind* branch = nullptr;
  bool normed = false;  // branch: together with the norm that follows it

  // What is known before it runs.
  MomentSums forward = {}, backward = {};
  bool idle_without_gradient = false;
  bool paired = false;  // its plan asks for products of factors
  MomentFactors factors = {};
  std::vector<std::uint8_t> varying = {};  // combine: terms whose factors are found at each place
};

struct TheoryProgram {
  std::vector<TheoryInstruction> instructions = {};
  bool centres = false;  // whether one of its norms removes the mean
  // What stacks that grow count after it, by the name that expressions know the number by.
  std::vector<std::pair<std::string, Coefficient>> counts = {};
};

// Measures what a profiled value is next: the wires whose variance is taken, and the value from these.
struct TheoryProfile {
  TheoryProgram program = {};
  std::vector<std::pair<std::string, int>> variances = {};  // names in `next`, and registers
  Coefficient next = {};
};

// A stream: one register; one for each copy; or, of a stack that grows, one for the sum of its copies.
struct TheoryStream {
  std::string name;
  int first = 0;  // register
  int registers = 1;
  bool copies = false;  // it began as copies(..)
  bool grows = false;
  double factor = 1;   // of x0, in every copy
  double count = 1;    // of copies at the start
  bool alone = false;  // no formula reads it: it is only looked at
};

// The name under which expressions know how many copies a stack that grows has; no formula can mention it.
inline std::string count_name(const std::string& stream) { return "#" + stream; }

// What stays the same in the whole stack.
struct TheorySurroundings {
  const Scheme& scheme;
  const TheoryConfig& config;
  Variables numbers;  // all but l and k, and constants that need neither
  bool measured_normed = false;
  StackKind stack = StackKind::single;
  std::vector<const BranchKind*> branches = {};  // of a layer, in order
  double encoder_depth = 0, decoder_depth = 0;   // N and M in [constants.encoder] and [constants.decoder]
  std::vector<TheoryStream> streams = {};

  bool reads_memory() const;
  int stream_registers() const { return streams.back().first + streams.back().registers; }
  // The register that holds what cross-attention reads.
  int memory() const { return stream_registers(); }
};

TheorySurroundings theory_surroundings(const Scheme& scheme, const TheoryConfig& config, StackKind stack,
                                       bool measured_normed);

// x first. Throws NotPredictedError for a start that is neither a multiple of x0 nor copies of one.
std::vector<TheoryStream> theory_streams(const TheorySurroundings& surroundings);

// An expression with everything filled in that is the same at all places: constants, learned values at their start,
// schedules at t = 0.
Coefficient fold(const Expression& expression, const TheorySurroundings& surroundings, const std::string& text);

double value_of(const Coefficient& coefficient, const Variables& place);

// Of a value that is learned per sublayer; `branch` as below.
TheoryProfile compile_profile(const LearnedSpec& learned, const BranchKind* branch,
                              const TheorySurroundings& surroundings, const Variables& place);

// Programs of one formula, by the outcome of its conditions.
class FormulaPrograms {
 public:
  // `branch` is what f stands for; null: branches are called by name.
  FormulaPrograms(const Formula& formula, const BranchKind* branch, const TheorySurroundings& surroundings);

  const TheoryProgram& at(const Variables& place);

 private:
  struct Condition {
    Coefficient condition;
    std::vector<Condition> yes, no;
  };
  std::vector<Condition> conditions_in(const Expression& e) const;
  static void outcome(const std::vector<Condition>& conditions, const Variables& place, std::string& found);

  const Formula& formula_;
  const BranchKind* branch_;
  const TheorySurroundings& surroundings_;
  std::vector<Condition> conditions_;
  std::map<std::string, TheoryProgram> programs_;
  const TheoryProgram* only_ = nullptr;  // where there are no conditions
  std::string key_;                      // kept for its memory
};

}  // namespace norma
