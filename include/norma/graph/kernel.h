// What the graph asks of a device: which ops it has, how much memory their kernels need, and how it fuses. What a
// kernel does is between the device's backend and its session; nothing here knows either.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "norma/graph/wire.h"

namespace norma {

class Op;
struct Rewrite;

struct Needs {
  std::int64_t scratch_bytes = 0;  // of one member, for the time of one call; laid out with everything else
};

class Kernel {
 public:
  explicit Kernel(Needs kernel_needs, int kernel_lane = 0) : needs(kernel_needs), lane(kernel_lane) {}
  virtual ~Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  const Needs needs;
  const int lane;  // kernels on different lanes may run at the same time; 0 is the main one
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string_view name() const = 0;  // "cpu"
  // Whether there is a kernel for this op on tensors of these types.
  virtual bool has(const Op& op, Types in, Types out) const = 0;
  virtual std::unique_ptr<const Kernel> make(const Op& op, Types in, Types out) const = 0;
  // The same for a node that is made again before it is read: it may run beside all others.
  virtual std::unique_ptr<const Kernel> make_again(const Op& op, Types in, Types out) const {
    return make(op, in, out);
  }
  // Fusions that pay on this device, in the order in which they apply.
  virtual std::span<const Rewrite> rewrites() const = 0;
  // And those with what is made again for the backward pass (Keep::lean), in a graph whose widths have been chosen.
  virtual std::span<const Rewrite> rewrites_of_lean() const;
  virtual std::int64_t alignment() const = 0;  // of every tensor, in bytes
  // How many steps the main lane may run ahead of the others: what they touch lives as long.
  virtual int most_ahead() const { return 1 << 20; }
  // Bytes left free behind a tensor of this size.
  virtual std::int64_t spacing(std::int64_t /*bytes*/) const { return 0; }
};

}  // namespace norma
