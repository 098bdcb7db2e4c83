// Measures how one branch answers: outputs, gradients and changes at the points of a grid.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "norma/device/session.h"
#include "norma/models/branch_gains.h"
#include "norma/models/parameters.h"

namespace norma {

// One branch as two plans: forward alone, and forward with the derivatives by input, memory and last matrix.
class BranchBench {
 public:
  using Build = std::function<Wire(Parameters&, Wire, Wire memory)>;

  // Gradients by weights are for sequences of `time` tokens. With a memory of `memory_time` tokens, unless that is 0.
  BranchBench(const Build& build, const BranchKind& kind, const BranchShape& shape, std::int64_t time,
              std::int64_t memory_time);
  BranchTable measure();
  // The memory is what x is, token by token.
  CrossTable measure_split();
  CrossTable measure_cross();

 private:
  std::uint64_t seed(int member) const { return shape_.seed + static_cast<std::uint64_t>(member); }
  std::shared_ptr<const Plan> plan(const Build& build, bool derivatives);
  // Random numbers that many grid points use.
  const std::vector<float>& normals(const std::string& name, int member, std::size_t count);
  // Rows of variance scale^2, of which a share is the same for every token of a sequence.
  void fill(Session& session, const char* input, int member, double scale, double shared, const char* name,
            std::span<const float> onto = {});
  // `memory`: the name of the random numbers that it is made of.
  CrossResponse point(double scale, double correlation, double memory_correlation, const char* memory = "memory");
  // The forward plan reads what the other one does.
  void put_back(const char* input);
  Moments changed_by(const char* input, double step, bool shared);
  // A gradient by a weight sums over tokens: T terms of one token with itself, T (T - 1) of two that share a part.
  void lengthen(BranchResponse& response) const;
  void keep_outputs();
  // Moments of what the forward plan's output moved by.
  Moments changed(double scale);
  void measure_noise(BranchResponse& response, double square);
  // Changes a block of columns of a weight (queries, keys and values are packed), looks, and puts it back.
  Moments noise(const BranchKind::Weight& part, double square);

  const BranchKind& kind_;
  BranchShape shape_;
  std::int64_t memory_time_;
  double time_;
  std::int64_t width_;
  std::vector<ParameterSpec> specs_;
  std::unique_ptr<Session> backward_, forward_;
  std::vector<std::vector<float>> before_;
  std::map<std::string, std::vector<float>> normals_;
};

}  // namespace norma
