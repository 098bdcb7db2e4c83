// BatchNorm: y = gain (x - mean) / sqrt(var + eps) + bias, per channel over all rows; running statistics for
// evaluation. Ioffe, Szegedy 2015.
#include <cmath>

#include "norma/core/error.h"
#include "norma/device/cpu/kernel.h"
#include "norma/graph/graph.h"
#include "norma/norms/channel.h"
#include "norms/affine.h"
#include "ops/check.h"

namespace norma {
namespace {

template <typename T>
CpuKernel running_kernel(std::int64_t channels, std::int64_t rows) {
  const T unbiased = static_cast<T>(rows) / static_cast<T>(rows - 1);
  return {.phases = {{1, [=](const Call& call, std::int64_t) {
                        const T momentum = call.in<T>(4)[0];
                        const auto mix = [&](int k, T factor) {
                          const T *const old = call.in<T>(k), *const batch = call.in<T>(k + 2);
                          T* const out = call.out<T>(k);
                          for (std::int64_t c = 0; c < channels; ++c) {
                            const T mixed = (T{1} - momentum) * old[c] + momentum * (batch[c] * factor);
                            out[c] = std::isfinite(batch[c]) ? mixed : old[c];
                          }
                        };
                        mix(0, T{1});
                        mix(1, unbiased);
                      }}}};
}

}  // namespace

std::string RunningUpdate::attributes() const { return fmt::format("rows={}", rows_); }

std::vector<Type> RunningUpdate::infer(std::span<const Type> in) const {
  check_count(in.size(), 5);
  check_computes(in[0]);
  for (std::size_t k = 1; k < 4; ++k) check_type("every statistic", in[k], in[0]);
  check_type("momentum", in[4], {{1}, in[0].dtype});
  if (rows_ < 2) fail("the unbiased variance needs at least two rows, but there is {}", rows_);
  return {in[0], in[1]};
}

CpuKernel cpu_kernel(const RunningUpdate& op, Types in, Types) {
  const std::int64_t channels = in[0].shape.elements();
  return in[0].dtype == DType::f32 ? running_kernel<float>(channels, op.rows())
                                   : running_kernel<double>(channels, op.rows());
}

Wire batch_norm(Wire x, Wire gain, Wire bias, RunningStatistics running, Scalar eps, Scalar momentum) {
  if (static_cast<bool>(running.mean) != static_cast<bool>(running.variance)) {
    fail("batch_norm: running mean and running variance go together, but only one was given");
  }
  Wires in = {x, eps.beside(x)};
  const Affine affine = append_affine(in, gain, bias);
  const Wires out =
      x.graph().apply(std::make_shared<ChannelNorm>(ChannelNormOptions{"batch_norm", Region::batch, 0, affine}), in);
  if (running.mean) {
    const Wire update[] = {running.mean, running.variance, out[2], out[3], momentum.beside(x)};
    x.graph().apply(std::make_shared<RunningUpdate>(x.shape().rows()), update);
  }
  return out[0];
}

Wire batch_norm_eval(Wire x, Wire gain, Wire bias, RunningStatistics running, Scalar eps) {
  Wires in = {x, eps.beside(x), running.mean, running.variance};
  const Affine affine = append_affine(in, gain, bias);
  return x.graph().apply(
      std::make_shared<ChannelNorm>(ChannelNormOptions{"batch_norm_eval", Region::running, 0, affine}), in)[0];
}

}  // namespace norma
