#include "bench/limits.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "device/cpu/gemm.h"
#include "device/cpu/team.h"
#include "norma/core/arena.h"
#include "norma/core/machine.h"

namespace norma::bench {
namespace {

// Bytes per second of memcpy over all threads, reads plus writes.
double copy_rate(Team& team, std::int64_t bytes, double seconds) {
  Arena from(bytes), to(bytes);
  std::memset(from.data(), 1, static_cast<std::size_t>(bytes));
  const auto size = static_cast<std::size_t>(bytes);
  const Timing timing = time_repeated([&] { copy_in_parallel(team, to.data(), from.data(), size); }, seconds);
  return 2.0 * static_cast<double>(bytes) / timing.best;
}

// Operations per second of oneDNN's f32 product, every thread with its own rows of one large product.
double sgemm_rate(Team& team, std::int64_t size, double seconds) {
  const std::int64_t rows = size / team.size();
  const std::int64_t bytes = size * size * 4;
  Arena a(bytes), b(bytes), c(bytes);
  std::fill_n(reinterpret_cast<float*>(a.data()), size * size, 0.5f);
  std::fill_n(reinterpret_cast<float*>(b.data()), size * size, 0.5f);
  const auto gemm = make_gemm(row_major_gemm(rows, size, size, false, false), DType::f32);
  Arena scratch(gemm->worker_bytes() * team.size() + kArenaAlignment);
  const Timing timing = time_repeated(
      [&] {
        team.run([&](int worker) {
          const std::int64_t at = worker * rows * size * 4;
          gemm->run(a.data() + at, b.data(), nullptr, c.data() + at, scratch.data() + worker * gemm->worker_bytes());
        });
      },
      seconds);
  return 2.0 * static_cast<double>(rows * team.size()) * static_cast<double>(size * size) / timing.best;
}

int team_size(const Options& options) { return options.threads == 0 ? machine().cores : options.threads; }

}  // namespace

void copy_in_parallel(Team& team, void* to, const void* from, std::size_t bytes) {
  team.run([&](int worker) {
    const auto part = [&](int index) {
      return bytes / kArenaAlignment * static_cast<std::size_t>(index) / static_cast<std::size_t>(team.size()) *
             kArenaAlignment;
    };
    const std::size_t begin = part(worker), end = worker + 1 == team.size() ? bytes : part(worker + 1);
    std::memcpy(static_cast<std::byte*>(to) + begin, static_cast<const std::byte*>(from) + begin, end - begin);
  });
}

double copy_limit(const Options& options, std::int64_t bytes) {
  Team team(team_size(options));
  return copy_rate(team, bytes, options.seconds) * 1e-9;
}

double sgemm_limit(const Options& options, std::span<const std::int64_t> sizes) {
  Team team(team_size(options));
  double best = 0;
  for (const std::int64_t size : sizes) best = std::max(best, sgemm_rate(team, size, options.seconds));
  return best * 1e-9;
}

void measure_limits(Report& report, const Options& options) {
  Options longer = options, one_thread = options;
  longer.seconds *= 2;
  one_thread.threads = 1;
  constexpr std::int64_t kSizes[] = {512, 1024, 2048};
  report.set_limit("copy_gbps", copy_limit(longer, std::int64_t{1} << 29));
  report.set_limit("cache_copy_gbps", copy_limit(options, kCacheCopyBytes));
  report.set_limit("sgemm_gflops", sgemm_limit(options, kSizes));
  report.set_limit("sgemm_core_gflops", sgemm_limit(one_thread, kSizes));
}

}  // namespace norma::bench
