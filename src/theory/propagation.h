// Runs compiled formulas on second moments: forward for the stream and its changes, backward for gradients.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "theory/gains.h"
#include "theory/moments.h"
#include "theory/stack.h"

namespace norma {

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

  // forward.cpp
  void step(const TheoryInstruction& instruction);
  void combine(const TheoryInstruction& instruction);
  void norm(const TheoryInstruction& instruction);
  void squash(const TheoryInstruction& instruction);
  double correlation(int wire) const;
  const BranchTable& table(const TheoryInstruction& instruction) const;
  const CrossTable& cross_table(const TheoryInstruction& instruction) const;
  // Init gains rarely depend on the layer; then each kind of branch has one scale for the whole stack.
  const BranchScale& scale_of(const TheoryInstruction& instruction);
  void branch(const TheoryInstruction& instruction);
  // Two sources: queries from the stream, keys and values from the memory, whose changes meet no other path.
  void cross(const TheoryInstruction& instruction);
  void carried(const TheoryInstruction& instruction);
  // What a branch gives back: a fresh wire, with the change of its input, of its memory and of its own weights.
  void answer(int to, const BranchResponse& response, const BranchScale& scale, double variance, const Moments& change,
              const Moments& moved);
  // What a linear map makes of moments that are in part each token's own and in part shared by all.
  static Moments spread(double total, double common, const Moments& own, const Moments& shared) {
    common = std::clamp(common, 0.0, total);
    const double single = total - common;
    return {single * own.own + common * shared.own, single * own.shared + common * shared.shared};
  }

  // backward.cpp
  void retrace(const TheoryProgram& program);
  void backward_combine(const TheoryInstruction& instruction);
  void backward_stop(const TheoryInstruction& instruction);
  void backward_norm(const TheoryInstruction& instruction);
  void backward_squash(const TheoryInstruction& instruction);
  void backward_branch(const TheoryInstruction& instruction);
  // Every layer hands the memory a gradient through matrices of its own, so that squares add.
  void backward_cross(const TheoryInstruction& instruction);
  void backward_carried(const TheoryInstruction& instruction);
  // Takes the gradient that arrives at a branch, and notes that of its last matrix.
  Moments arrive(const TheoryInstruction& instruction, const BranchResponse& response, double weight_scale);
  void hand_back(int from, double through, const Moments& arriving);
  // By x; where a scheme keeps copies of it, by a change that all of them share.
  double watched_gradient() const;

  // What the backward pass needs of the forward pass: each instruction leaves a few numbers and takes them back.
  template <typename... Numbers>
  void leave(Numbers... numbers) {
    if (left_ + sizeof...(numbers) > room_) make_room(2 * left_ + sizeof...(numbers));
    ((tape_[left_++] = static_cast<double>(numbers)), ...);
  }
  template <std::size_t Count>
  std::array<double, Count> take_back() {
    left_ -= Count;
    std::array<double, Count> numbers;
    std::copy_n(tape_.get() + left_, Count, numbers.begin());
    return numbers;
  }
  void make_room(std::size_t numbers);

  const BranchTables& tables_;
  const EncoderDecoderTables* cross_;
  TheoryStack stack_;
  RoleGains gains_;
  bool constant_gains_ = false;
  std::vector<int> watched_;  // registers
  CarriedScores carried_ = {};
  // What passes a branch has no preferred direction, so that a norm which removes the mean takes 1/d of it. Along the
  // stream itself nothing is lost: where branches are homogeneous, a gradient stays orthogonal to what was normed.
  double kept_ = 1;
  Forward forward_;
  Backward gradient_;
  std::vector<const TheoryProgram*> ran_;  // at each place, and the final one
  std::unique_ptr<double[]> tape_;         // pages that nothing is left on are never touched
  std::size_t left_ = 0, room_ = 0;
  struct MeasuredBranch {
    const BranchTable* table = nullptr;
    std::optional<BranchScale> scale = {};
  };
  std::vector<MeasuredBranch> branches_;  // by kind, plain and normed
  std::vector<double> next_;              // values of the sublayer above, as they are profiled
  std::size_t branches_left_ = 0;         // on the way back
  Theory theory_;
};

}  // namespace norma
