// The CPU as a backend: a table of kernels by the type of their op.
#pragma once

#include <initializer_list>
#include <typeindex>
#include <utility>
#include <vector>

#include "norma/device/cpu/kernel.h"
#include "norma/device/kernel_table.h"
#include "norma/graph/kernel.h"
#include "norma/graph/op.h"
#include "norma/graph/rewrite.h"

namespace norma {

class Plan;

// A kernel as plans carry it.
class CpuProgram final : public Kernel {
 public:
  explicit CpuProgram(CpuKernel kernel, int kernel_lane = 0)
      : Kernel({.scratch_bytes = kernel.scratch_bytes}, kernel_lane),
        phases(std::move(kernel.phases)),
        worker_bytes(kernel.worker_bytes) {}

  const std::vector<Phase> phases;
  const std::int64_t worker_bytes;  // private to each thread, so no part of a member's memory
};

// The most that any kernel of the plan needs for itself on each thread; 0 on other devices.
std::int64_t worker_bytes(const Plan& plan);

class CpuBackend final : public Backend {
 public:
  CpuBackend();

  // Enters the kernel of an op, for tensors of these floating dtypes; integers are the op's own business.
  template <typename OpType>
  void add(CpuKernel (*kernel_of)(const OpType& op, Types in, Types out), std::initializer_list<DType> dtypes,
           bool (*serves)(const OpType& op, Types in, Types out) = nullptr) {
    kernels_.add<OpType>(kernel_of, dtypes, serves);
  }
  void add(std::vector<Rewrite> rewrites);

  std::string_view name() const override { return "cpu"; }
  bool has(const Op& op, Types in, Types out) const override { return kernels_.has(op, in, out); }
  std::unique_ptr<const Kernel> make(const Op& op, Types in, Types out) const override;
  std::span<const Rewrite> rewrites() const override { return rewrites_; }
  std::int64_t alignment() const override;
  std::int64_t spacing(std::int64_t bytes) const override;

  std::vector<std::type_index> ops() const { return kernels_.ops(); }  // that it has a kernel for, in no order

 private:
  KernelTable<CpuKernel> kernels_;
  std::vector<Rewrite> rewrites_;
};

}  // namespace norma
