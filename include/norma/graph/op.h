// The definition of an op: shape rule, derivative, reference composition, and cost. What runs is a backend's business.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "norma/graph/wire.h"

namespace norma {

struct Cost {
  double flops = 0;
  double bytes = 0;     // the least memory traffic: every input read once, every output written once
  double products = 0;  // of the flops, those of sums of products (matrices, attention, convolution)
};

// Mixed precision: which tensors of an op are narrow (bf16); the others are wide (f32). Arithmetic is f32 in any case.
struct Widths {
  std::vector<bool> in, out;

  void all(bool narrow);
  void follow();  // all inputs and outputs are narrow where one input is: for ops that move or map elements
};

// What a derivative rule sees: inputs, outputs, and the gradient of the loss by each output (empty wire = zero).
struct VjpContext {
  std::span<const Wire> in;
  std::span<const Wire> out;
  std::span<const Wire> dout;
  std::span<const bool> needed;  // whether the gradient by input i is wanted

  Graph& graph() const { return in[0].graph(); }
};

class Op {
 public:
  virtual ~Op() = default;

  virtual std::string_view name() const = 0;
  // Everything that distinguishes two applications of this op, printed: "causal=true heads=4".
  virtual std::string attributes() const { return ""; }

  // The types of the outputs; throws Error when the inputs do not fit.
  virtual std::vector<Type> infer(std::span<const Type> in) const = 0;

  // Appends the derivative: one wire per input, empty where there is no gradient. The default differentiates
  // reference(), so a fused op has second derivatives as soon as it has a reference.
  virtual Wires vjp(const VjpContext& context) const;

  // The same function in elementary ops: specification, test oracle and route to higher derivatives.
  // Elementary ops have none and must define vjp.
  virtual bool has_reference() const { return false; }
  virtual Wires reference(std::span<const Wire> in) const;

  virtual Cost cost(std::span<const Type> in, std::span<const Type> out) const;

  // Mixed precision. Whether a narrow tensor is better than a wide one as this input.
  virtual bool wants_narrow(int /*in*/) const { return false; }
  // Told which inputs are narrow, and which outputs nobody wants wide, says what is to be read and written.
  virtual void choose(Widths& widths) const { widths.all(false); }
  // The same op with one more output, the last: what output 0 is, in the other width. Null where there is none.
  virtual std::shared_ptr<const Op> with_twin() const { return nullptr; }

  // What it contributes to a sum of products that is written out: a product, then its sum.
  enum class Elementary { other, product, sum };
  virtual Elementary elementary() const { return Elementary::other; }

  // Outputs that need no memory when nobody reads them; the kernel then gets none.
  virtual bool optional_output(int) const { return false; }
  // Those that single runs may leave out too, if only watched ones read them: nothing else has other bits for it.
  virtual bool spared_output(int) const { return false; }
  // Whether output `out` may be written over input `in` when that input dies here.
  virtual bool can_overwrite(int /*out*/, int /*in*/) const { return false; }
  // Output `out` is the new content of persistent input `in` (optimiser state, running statistics).
  struct Update {
    int out;
    int in;
  };
  virtual std::vector<Update> updates() const { return {}; }
  // Whether it may be a view; only then view_offset() is asked.
  virtual bool views() const { return false; }
  // A view: output 0 is input 0's memory from this byte on. Negative: not a view.
  virtual std::int64_t view_offset(std::span<const Type> /*in*/) const { return -1; }
};

using OpPtr = std::shared_ptr<const Op>;

// Every input read once, every output written once.
double traffic(std::span<const Type> in, std::span<const Type> out);

}  // namespace norma
