#include "device/cpu/cache_reach.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

#include "device/cpu/team.h"
#include "hwy/cache_control.h"
#include "hwy/highway.h"
#include "norma/core/arena.h"
#include "norma/core/machine.h"

namespace norma {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using CopyTag = hn::ScalableTag<float>;

enum class Past { cache, nothing };

// What a kernel and its reader do with one share of a tensor: y = x + 1, then the sum of y. The smallest instruction
// set is enough: memory is what takes the time.
template <Past kPast>
void write_share(const float* x, float* y, std::int64_t count) {
  const CopyTag d;
  const auto one = hn::Set(d, 1.0f);
  for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(hn::Lanes(d))) {
    const auto value = hn::Add(hn::Load(d, x + i), one);
    if constexpr (kPast == Past::cache) {
      hn::Stream(value, d, y + i);
    } else {
      hn::Store(value, d, y + i);
    }
  }
  hwy::FlushStream();
}

float read_share(const float* y, std::int64_t count) {
  const CopyTag d;
  auto sum = hn::Zero(d);
  for (std::int64_t i = 0; i < count; i += static_cast<std::int64_t>(hn::Lanes(d)))
    sum = hn::Add(sum, hn::Load(d, y + i));
  return hn::GetLane(sum);
}

// Seconds of one write and one read of `floats` numbers over the whole team, in shares of whole cache lines. Small
// tensors are gone through many times: waking a team takes as long as 4 MB do.
template <Past kPast>
double time_round(Team& team, const float* x, float* y, std::int64_t floats, std::vector<float>& sums) {
  constexpr std::int64_t kLine = kArenaAlignment / 4, kLeastFloats = std::int64_t{64} << 18;
  const std::int64_t repeats = std::max<std::int64_t>(1, kLeastFloats / floats);
  const auto before = std::chrono::steady_clock::now();
  team.run([&](int worker) {
    const std::int64_t begin = floats / kLine * worker / team.size() * kLine;
    const std::int64_t end = floats / kLine * (worker + 1) / team.size() * kLine;
    for (std::int64_t repeat = 0; repeat < repeats; ++repeat) {
      write_share<kPast>(x + begin, y + begin, end - begin);
      sums[static_cast<std::size_t>(worker)] = read_share(y + begin, end - begin);
    }
  });
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count() /
         static_cast<double>(repeats);
}

}  // namespace

std::int64_t measure_cache_reach(std::int64_t most) {
  constexpr int kRounds = 3;
  Team team(machine().cores);
  std::vector<float> sums(static_cast<std::size_t>(team.size()));
  for (std::int64_t bytes = kNeverStreamed; bytes < most; bytes *= 2) {
    Arena x(bytes), y(bytes);
    const auto* from = reinterpret_cast<const float*>(x.data());
    auto* to = reinterpret_cast<float*>(y.data());
    time_round<Past::nothing>(team, from, to, bytes / 4, sums);  // touches every page
    double through = std::numeric_limits<double>::infinity(), past = through;
    for (int round = 0; round < kRounds; ++round) {
      through = std::min(through, time_round<Past::nothing>(team, from, to, bytes / 4, sums));
      past = std::min(past, time_round<Past::cache>(team, from, to, bytes / 4, sums));
    }
    // From memory the way around saves one of four transfers; in cache it costs a multiple. Between the two is noise.
    if (past < 0.9 * through) return bytes;
  }
  return most;
}

bool outgrows_cache(std::int64_t bytes) {
  const std::int64_t reported = 2 * machine().last_level_cache;
  if (bytes <= kNeverStreamed) return false;
  if (bytes > reported) return true;
  static const std::int64_t reach = measure_cache_reach(reported);
  return bytes > reach;
}

}  // namespace norma
