// Runs compiled formulas on second moments: forward for the stream and its changes, backward for gradients.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "schemes/theory_gains.h"
#include "schemes/theory_moments.h"
#include "schemes/theory_stack.h"

namespace norma {

// What the backward pass needs of one executed instruction.
struct TheoryRecord {
  const TheoryInstruction* instruction = nullptr;
  double first = 0, second = 0;    // norm: the factor; branch: variance and correlation of its input; tanh: too
  double third = 0, fourth = 0;    // cross: correlation and scale of its memory
  std::uint32_t coefficients = 0;  // combine: where they begin
  std::uint32_t scale = 0;         // branch: which BranchScale
  int branch = -1;                 // index into Theory::branches
};

class TheoryPropagation {
 public:
  // `cross`: of a decoder that reads a memory.
  TheoryPropagation(const Scheme& scheme, const BranchTables& tables, const TheoryConfig& config,
                    StackKind stack = StackKind::single, const EncoderDecoderTables* cross = nullptr);

  void compile_all() { stack_.compile_all(); }

  void forward();
  void backward(const Moments& gradient);
  Theory take() { return std::move(theory_); }

  // Of the encoder: what the decoder reads, with its change; and of the decoder: the gradient by it.
  std::array<double, 4> output() const { return forward_.at(0); }
  void remember(const std::array<double, 4>& memory) { forward_.set(stack_.surroundings().memory(), memory); }
  Moments memory_gradient() const;

 private:
  // Of a token with itself and of two different tokens: the wires, and forward also their changes.
  enum Lane : std::size_t { kOwn, kShared, kChangeOwn, kChangeShared };
  using Forward = MomentMatrix<4>;
  using Backward = MomentMatrix<2>;

  // Scores of all layers so far, each of matrices of its own: their squares add, and the sum is as sharp as the scores
  // of an input of variance `first`. So do the squares of their changes, and backward those of their gradients.
  struct CarriedScores {
    double square = 0;           // of the scores
    double own = 0, shared = 0;  // changes of what queries and keys read, as far as scores show them
    double noise = 0;            // changes of queries and keys
    Moments gradient = {};       // of layers above
  };

  void execute(const TheoryProgram& program, std::int64_t layer);
  // Runs a sublayer with what was found for it, after measuring on its input what the next one starts at.
  void execute_profiled(std::size_t formula, std::int64_t layer);

  // theory_forward.cpp
  void step(const TheoryInstruction& instruction, TheoryRecord& record);
  void forward_linear(const TheoryInstruction& instruction, const std::array<double, kMostRegisters>& factors);
  void combine(const TheoryInstruction& instruction, TheoryRecord& record);
  void norm(const TheoryInstruction& instruction, TheoryRecord& record);
  void squash(const TheoryInstruction& instruction, TheoryRecord& record);
  double correlation(int wire) const;
  const BranchTable& table(const TheoryInstruction& instruction) const;
  const CrossTable& cross_table(const TheoryInstruction& instruction) const;
  // Init gains rarely depend on the layer; then each kind of branch has one scale for the whole stack.
  std::uint32_t scale_of(const TheoryInstruction& instruction);
  void branch(const TheoryInstruction& instruction, TheoryRecord& record);
  // Two sources: queries from the stream, keys and values from the memory, whose changes meet no other path.
  void cross(const TheoryInstruction& instruction, TheoryRecord& record);
  void carried(const TheoryInstruction& instruction, TheoryRecord& record);
  // What a branch gives back: a fresh wire, with the change of its input, of its memory and of its own weights.
  void answer(int to, const BranchResponse& response, const BranchScale& scale, double variance, const Moments& change,
              const Moments& moved);
  // What a linear map makes of moments that are in part each token's own and in part shared by all.
  static Moments spread(double total, double common, const Moments& own, const Moments& shared);

  // theory_backward.cpp
  void retrace(std::size_t begin, std::size_t end);
  void backward_linear(const TheoryInstruction& instruction, const double* factors);
  void backward_squash(const TheoryInstruction& instruction, const TheoryRecord& record);
  void backward_branch(const BranchResponse& response, const TheoryRecord& record, int from, int to);
  // Every layer hands the memory a gradient through matrices of its own, so that squares add.
  void backward_cross(const TheoryInstruction& instruction, const TheoryRecord& record);
  void backward_carried(const TheoryInstruction& instruction, const TheoryRecord& record);
  void hand_back(int from, double through, const Moments& arriving);
  // By x; where a scheme keeps copies of it, by a change that all of them share.
  double watched_gradient() const;

  const BranchTables& tables_;
  const EncoderDecoderTables* cross_;
  TheoryStack stack_;
  RoleGains gains_;
  bool constant_gains_ = false;
  std::vector<int> watched_;  // registers
  CarriedScores carried_ = {};
  int registers_ = 1;
  // What passes a branch has no preferred direction, so that a norm which removes the mean takes 1/d of it. Along the
  // stream itself nothing is lost: where branches are homogeneous, a gradient stays orthogonal to what was normed.
  bool centres_ = false;
  double kept_ = 1;
  Forward forward_;
  Backward gradient_;
  std::vector<TheoryRecord> records_;
  std::vector<std::size_t> begins_;  // of each formula that ran, in records_
  std::size_t closing_ = 0;          // where the final formula begins
  std::vector<double> coefficients_;
  std::vector<BranchScale> scales_;
  std::array<int, 4> fixed_scale_ = {-1, -1, -1, -1};
  Theory theory_;
};

}  // namespace norma
