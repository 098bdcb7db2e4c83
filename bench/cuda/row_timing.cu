// Medians over launches that rotate through two sets of tensors, each far larger than the second-level cache. Tensors
// are as large as those of the copy that they are compared with, since a copy of 512 MiB is 3 % slower than one of 2
// GiB.
#include "bench/cuda/row_timing.h"

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "bench/cuda/device.h"

namespace norma::bench {
namespace {

using cuda::RowTypes;

constexpr std::int64_t kTensorBytes = std::int64_t{1} << 31;
constexpr int kSets = 2, kWarmUps = 3, kRuns = 15;

// Numbers between -1 and 1, different everywhere: zeros would run faster than real data.
__global__ void fill_with_noise(std::uint32_t* to, std::size_t words, bool bf16) {
  const std::size_t stride = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < words; i += stride) {
    std::uint32_t bits = static_cast<std::uint32_t>(i) * 2654435761u + static_cast<std::uint32_t>(i >> 32);
    bits = (bits ^ (bits >> 15)) * 2246822519u;
    bits = (bits ^ (bits >> 13)) * 3266489917u;
    bits ^= bits >> 16;
    // Sign and mantissa are random, the exponent is that of [0.5, 1).
    to[i] = bf16 ? (bits & 0x807f807fu) | 0x3f003f00u : (bits & 0x807fffffu) | 0x3f000000u;
  }
}

struct Sample {
  double median, noise;  // milliseconds, relative
};

template <class Run>
Sample sample(const Run& run) {
  cudaEvent_t begin, end;
  check_cuda(cudaEventCreate(&begin), "event");
  check_cuda(cudaEventCreate(&end), "event");
  std::vector<double> times;
  for (int i = -kWarmUps; i < kRuns; ++i) {
    check_cuda(cudaEventRecord(begin), "event");
    run((i + kWarmUps) % kSets);
    check_cuda(cudaEventRecord(end), "event");
    check_cuda(cudaEventSynchronize(end), "timed run");
    float ms = 0;
    check_cuda(cudaEventElapsedTime(&ms, begin, end), "event");
    if (i >= 0) times.push_back(ms);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  std::sort(times.begin(), times.end());
  const double median = times[kRuns / 2];
  return {median, times[kRuns * 3 / 4] / median - 1};
}

double measure_copy(const DeviceMemory& memory) {
  const Sample copy = sample([&](int set) {
    std::byte* const from = memory.data() + set * 2 * kTensorBytes;
    check_cuda(cudaMemcpyAsync(from + kTensorBytes, from, kTensorBytes, cudaMemcpyDeviceToDevice), "copy");
  });
  return 2.0 * static_cast<double>(kTensorBytes) / copy.median / 1e9;
}

// What must be read and written, once each; scratch is the kernel's own affair.
double traffic(const std::vector<RowTensor>& tensors) {
  double bytes = 0;
  for (const RowTensor& tensor : tensors)
    bytes += tensor.role == Role::scratch ? 0 : static_cast<double>(tensor.bytes());
  return bytes;
}

class Timer {
 public:
  Timer() : memory_(static_cast<std::size_t>(kTensorBytes * 9)), active_(512) {
    check_cuda(cudaMemset(active_.data(), 1, active_.size()), "flags");
    fill(RowTypes::f32);
    result_.copy = measure_copy(memory_);
  }

  // One member with tensors of kTensorBytes, or several small ones.
  template <class Case>
  void time(const Case& row_case, int members, double target) {
    fill(row_case.shape.types);
    const std::int64_t set = row_case.bytes * members;
    const int sets = set * kSets <= static_cast<std::int64_t>(memory_.size()) ? kSets : 1;
    const Sample run = sample([&](int index) {
      std::byte* const base = memory_.data() + index % sets * set;
      const cuda::Members at{base, row_case.bytes, members, reinterpret_cast<std::uint8_t*>(active_.data())};
      check_cuda(static_cast<cudaError_t>(launch(row_case, at, nullptr)), describe(row_case));
    });
    const double rate = traffic(row_case.tensors) * members / run.median / 1e9;
    const std::string name = describe(row_case) + (members > 1 ? " x " + std::to_string(members) + " members" : "");
    result_.results.push_back({name, row_case.shape.rows, row_case.shape.width, run.median * 1e3, run.noise, rate,
                               rate / result_.copy, target});
  }

  RowTimings finish() {
    fill(RowTypes::f32);
    result_.copy = std::max(result_.copy, measure_copy(memory_));  // before and after: the better of the two counts
    for (RowTiming& timing : result_.results) timing.share = timing.terabytes_per_second / result_.copy;
    return result_;
  }

 private:
  // Statistics and gains are f32 whatever the types; as bf16 noise they are still numbers of the same size.
  void fill(RowTypes types) {
    const bool bf16 = types != RowTypes::f32;
    if (filled_ == (bf16 ? 2 : 1)) return;
    fill_with_noise<<<2048, 256>>>(reinterpret_cast<std::uint32_t*>(memory_.data()), memory_.size() / 4, bf16);
    check_cuda(cudaDeviceSynchronize(), "noise");
    filled_ = bf16 ? 2 : 1;
  }

  DeviceMemory memory_, active_;
  RowTimings result_;
  int filled_ = 0;
};

std::int64_t rows_of(RowTypes types, std::int64_t width, std::int64_t bytes) {
  return bytes / (types == RowTypes::bf16 ? 2 : 4) / width;
}

void time_targets(Timer& timer, RowTypes types) {
  for (const RowNormName norm : {RowNormName::layer, RowNormName::rms}) {
    for (const std::int64_t width : {256, 512, 768, 1024, 1600, 2048, 4096, 5120, 8192}) {
      for (const int extra : {0, 1}) {
        const RowShape shape{
            .norm = norm, .types = types, .rows = rows_of(types, width, kTensorBytes), .width = width, .extra = extra};
        timer.time(forward_case(shape), 1, 0.95);
        timer.time(backward_case(shape), 1, 0.90);
      }
    }
  }
}

// Without a target: the third norm, other widths, smaller tensors, cohorts.
void time_others(Timer& timer) {
  const auto both = [&](const RowShape& shape, int members) {
    timer.time(forward_case(shape), members, 0);
    timer.time(backward_case(shape), members, 0);
  };
  for (const RowTypes types : {RowTypes::f32, RowTypes::bf16}) {
    const auto rows = [&](std::int64_t width) { return rows_of(types, width, kTensorBytes); };
    both({.norm = RowNormName::scale, .types = types, .rows = rows(1024), .width = 1024}, 1);
    both({.norm = RowNormName::rms, .types = types, .rows = rows(1024), .width = 1024, .counted = 64}, 1);
    for (const std::int64_t width : {16, 64, 128, 1023, 16384, 65536}) {
      both({.types = types, .rows = rows(width), .width = width}, 1);
    }
    both({.types = types, .rows = rows_of(types, 1024, std::int64_t{1} << 29), .width = 1024}, 1);
    for (const int extra : {0, 1}) {
      both({.types = types, .rows = 2048, .width = 128, .extra = extra}, 1);
      both({.types = types, .rows = 2048, .width = 128, .extra = extra}, 64);
      both({.types = types, .rows = 4096, .width = 256, .extra = extra}, 1);
    }
  }
}

}  // namespace

RowTimings time_row_norms() {
  Timer timer;
  for (const RowTypes types : {RowTypes::f32, RowTypes::bf16, RowTypes::f32_stream_bf16_branch}) {
    time_targets(timer, types);
  }
  time_others(timer);
  return timer.finish();
}

std::string table_of(const RowTimings& timings) {
  char line[256];
  std::snprintf(line, sizeof line, "copy %.3f TB/s\n%-44s %10s %8s %7s %6s\n", timings.copy, "name", "us", "TB/s",
                "share", "noise");
  std::string text = line;
  int reached = 0, targets = 0;
  for (const RowTiming& timing : timings.results) {
    const bool met = timing.share >= timing.target;
    targets += timing.target > 0;
    reached += timing.target > 0 && met;
    std::snprintf(line, sizeof line, "%-44s %10.2f %8.3f %6.1f%% %5.1f%% %s\n", timing.name.c_str(),
                  timing.microseconds, timing.terabytes_per_second, 100 * timing.share, 100 * timing.noise,
                  timing.target == 0 ? ""
                  : met              ? "ok"
                                     : "MISSED");
    text += line;
  }
  std::snprintf(line, sizeof line, "%d of %d targets reached\n", reached, targets);
  return text + line;
}

std::string json_of(const RowTimings& timings, const std::string& commit) {
  cudaDeviceProp card;
  int driver = 0;
  check_cuda(cudaGetDeviceProperties(&card, 0), "properties");
  check_cuda(cudaDriverGetVersion(&driver), "driver");
  char date[32], line[512];
  const std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&now));
  std::snprintf(line, sizeof line,
                "{\n  \"card\": \"%s\",\n  \"commit\": \"%s\",\n  \"copy_tbps\": %.4f,\n  \"cuda_driver\": %d,\n"
                "  \"date\": \"%s\",\n  \"results\": [\n",
                card.name, commit.c_str(), timings.copy, driver, date);
  std::string text = line;
  for (const RowTiming& timing : timings.results) {
    std::snprintf(line, sizeof line,
                  "    {\"name\": \"%s\", \"microseconds\": %.3f, \"noise\": %.4f, \"share\": %.4f, \"target\": %s, "
                  "\"tbps\": %.4f}%s\n",
                  timing.name.c_str(), timing.microseconds, timing.noise, timing.share,
                  timing.target == 0     ? "null"
                  : timing.target > 0.92 ? "0.95"
                                         : "0.90",
                  timing.terabytes_per_second, &timing == &timings.results.back() ? "" : ",");
    text += line;
  }
  return text + "  ]\n}\n";
}

}  // namespace norma::bench
