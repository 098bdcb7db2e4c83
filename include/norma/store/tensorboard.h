// Event files that TensorBoard reads: TFRecord frames with masked CRC-32C around protobuf messages.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "norma/store/flush_policy.h"
#include "norma/store/folder.h"

namespace norma {

class AppendFile;

struct EventScalar {
  std::string tag;
  float value = 0;  // NaN and infinities are written as they are
};

// How values are spread: counts in buckets whose width grows by a tenth from one to the next, on both sides of zero.
struct Histogram {
  explicit Histogram(std::span<const float> values);

  double min = 0, max = 0, count = 0, sum = 0, sum_of_squares = 0;  // of the finite values
  std::vector<double> bucket_ends;                                  // ascending; the first bucket begins at -infinity
  std::vector<double> bucket_counts;
  std::int64_t not_finite = 0;  // values that no bucket can hold
};

// One event file of a run; each writer begins a new one that sorts behind those already there.
class EventWriter {
 public:
  // A run that goes on after step S passes purge_step = S + 1: TensorBoard then drops what earlier files say from that
  // step on. Throws Error when the file cannot be created.
  explicit EventWriter(const Folder& directory, std::optional<std::int64_t> purge_step = {}, FlushPolicy policy = {});
  explicit EventWriter(const std::filesystem::path& directory, std::optional<std::int64_t> purge_step = {},
                       FlushPolicy policy = {})
      : EventWriter(Folder(directory), purge_step, policy) {}
  EventWriter(EventWriter&&) noexcept;
  EventWriter& operator=(EventWriter&&) noexcept;
  ~EventWriter();

  // `wall_time` in seconds since 1970; now, when it is left out.
  void add_scalars(std::int64_t step, std::span<const EventScalar> scalars, std::optional<double> wall_time = {});
  void add_histogram(std::int64_t step, std::string_view tag, const Histogram& histogram,
                     std::optional<double> wall_time = {});

  void flush();
  void sync();
  const std::filesystem::path& path() const;

 private:
  std::unique_ptr<AppendFile> file_;
};

}  // namespace norma
