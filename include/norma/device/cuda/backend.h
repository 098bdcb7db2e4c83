// NVIDIA GPUs as a backend: a table of kernels by the type of their op.
#pragma once

#include <memory>
#include <vector>

#include "norma/device/cuda/kernel.h"
#include "norma/device/kernel_table.h"
#include "norma/graph/kernel.h"
#include "norma/graph/rewrite.h"

namespace norma {

// A kernel as plans carry it.
class CudaProgram final : public Kernel {
 public:
  explicit CudaProgram(cuda::Program made, int kernel_lane = 0)
      : Kernel({.scratch_bytes = made.scratch_bytes}, kernel_lane), program(std::move(made)) {}

  const cuda::Program program;
};

class CudaBackend final : public Backend {
 public:
  using Table = KernelTable<cuda::Program>;
  static constexpr int kLaneOfSecondEditions = 2;

  Table& kernels() { return kernels_; }
  const Table& kernels() const { return kernels_; }
  void add(std::vector<Rewrite> rewrites) { rewrites_.insert(rewrites_.end(), rewrites.begin(), rewrites.end()); }
  void set_rewrites_of_lean(std::vector<Rewrite> rewrites) { rewrites_of_lean_ = std::move(rewrites); }

  std::string_view name() const override { return "cuda"; }
  bool has(const Op& op, Types in, Types out) const override { return kernels_.has(op, in, out); }
  std::unique_ptr<const Kernel> make(const Op& op, Types in, Types out) const override {
    return std::make_unique<const CudaProgram>(kernels_.make(op, in, out), lane_of_ ? lane_of_(op, in, out) : 0);
  }
  std::unique_ptr<const Kernel> make_again(const Op& op, Types in, Types out) const override {
    return std::make_unique<const CudaProgram>(kernels_.make(op, in, out), lane_of_ ? kLaneOfSecondEditions : 0);
  }
  // Which ops run beside the others, and on which lane.
  void set_lanes(int (*lane_of)(const Op& op, Types in, Types out)) { lane_of_ = lane_of; }
  int most_ahead() const override { return 48; }  // about two layers of a transformer
  std::span<const Rewrite> rewrites() const override { return rewrites_; }
  std::span<const Rewrite> rewrites_of_lean() const override { return rewrites_of_lean_; }
  std::int64_t alignment() const override { return 256; }

 private:
  Table kernels_;
  int (*lane_of_)(const Op& op, Types in, Types out) = nullptr;
  std::vector<Rewrite> rewrites_, rewrites_of_lean_;
};

}  // namespace norma
