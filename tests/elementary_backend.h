// The CPU without any kernel that could be done without: what has a reference must become it. As small as a new
// backend.
#pragma once

#include "norma/backends/cpu.h"

namespace norma::test {

class ElementaryBackend final : public Backend {
 public:
  std::string_view name() const override { return "elementary"; }
  bool has(const Op& op, Types in, Types out) const override {
    return !op.has_reference() && cpu_backend().has(op, in, out);
  }
  std::unique_ptr<const Kernel> make(const Op& op, Types in, Types out) const override {
    return cpu_backend().make(op, in, out);
  }
  std::span<const Rewrite> rewrites() const override { return cpu_backend().rewrites(); }
  std::int64_t alignment() const override { return cpu_backend().alignment(); }
};

}  // namespace norma::test
