#include "norma/store/tensorboard.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <utility>

#include "norma/core/error.h"
#include "store/append_file.h"
#include "store/crc32c.h"
#include "store/protobuf.h"

namespace norma {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "events.out.tfevents.";

// Numbers of the fields in TensorFlow's event.proto, summary.proto and histogram.proto.
namespace event_field {
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
}
namespace session_log {
constexpr int kStatus = 1, kStart = 1;
}
namespace summary_field {
constexpr int kValue = 1, kTag = 1, kSimpleValue = 2, kHistogram = 5;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

// The format masks its checksums, because data that holds its own CRC gives poor ones.
std::string masked_crc(std::string_view bytes) {
  const std::uint32_t crc = crc32c(bytes);
  return little_endian(((crc >> 15) | (crc << 17)) + 0xa282ead8u, 4);
}

std::string frame(const ProtobufMessage& event) {
  const std::string length = little_endian(event.bytes().size(), 8);
  return length + masked_crc(length) + event.bytes() + masked_crc(event.bytes());
}

ProtobufMessage begin_event(double wall_time, std::int64_t step) {
  ProtobufMessage event;
  event.add_double(event_field::kWallTime, wall_time);
  event.add_integer(event_field::kStep, step);
  return event;
}

// TensorBoard reads a run's files in the order of their names, which is that of their times. Two writers may begin in
// one second, and clocks go back; hence the largest time so far, and a count.
std::string next_file(const Folder& directory) {
  auto time = static_cast<std::int64_t>(seconds_now());
  int count = 0;
  for (const std::string& name : directory.names()) {
    if (!name.starts_with(kPrefix)) continue;
    std::int64_t other = 0;
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), other);
    time = std::max(time, std::min(other, std::int64_t{9'999'999'999}));
    ++count;
  }
  return fmt::format("{}{:010}.norma.{:06}", kPrefix, time, count);
}

const std::vector<double>& all_bucket_ends() {
  static const std::vector<double> ends = [] {
    std::vector<double> positive;
    for (double end = 1e-12; end < 1e39; end *= 1.1) positive.push_back(end);  // up to the largest float
    std::vector<double> all;
    for (auto end = positive.rbegin(); end != positive.rend(); ++end) all.push_back(-*end);
    all.push_back(0);
    all.insert(all.end(), positive.begin(), positive.end());
    return all;
  }();
  return ends;
}

}  // namespace

Histogram::Histogram(std::span<const float> values) {
  const std::vector<double>& ends = all_bucket_ends();
  std::vector<double> counts(ends.size(), 0.0);
  for (const double value : values) {
    if (!std::isfinite(value)) {
      ++not_finite;
      continue;
    }
    min = count == 0 ? value : std::min(min, value);
    max = count == 0 ? value : std::max(max, value);
    count += 1;
    sum += value;
    sum_of_squares += value * value;
    counts[static_cast<std::size_t>(std::lower_bound(ends.begin(), ends.end(), value) - ends.begin())] += 1;
  }
  if (count == 0) return;
  const auto filled = [](double n) { return n > 0; };
  const auto last = std::find_if(counts.rbegin(), counts.rend(), filled).base();
  auto first = std::find_if(counts.begin(), last, filled);
  if (first != counts.begin()) --first;  // an empty bucket in front says where the first one begins
  bucket_counts.assign(first, last);
  bucket_ends.assign(ends.begin() + (first - counts.begin()), ends.begin() + (last - counts.begin()));
}

EventWriter::EventWriter(const Folder& directory, std::optional<std::int64_t> purge_step, FlushPolicy policy)
    : file_(std::make_unique<AppendFile>(directory, next_file(directory), AppendFile::Mode::create, policy)) {
  ProtobufMessage version = begin_event(seconds_now(), 0);
  version.add_text(event_field::kFileVersion, "brain.Event:2");
  file_->append(frame(version));
  if (purge_step) {
    ProtobufMessage start, event = begin_event(seconds_now(), *purge_step);
    start.add_integer(session_log::kStatus, session_log::kStart);
    event.add_message(event_field::kSessionLog, start);
    file_->append(frame(event));
  }
  file_->flush();
}

EventWriter::EventWriter(EventWriter&&) noexcept = default;
EventWriter& EventWriter::operator=(EventWriter&&) noexcept = default;
EventWriter::~EventWriter() = default;

void EventWriter::add_scalars(std::int64_t step, std::span<const EventScalar> scalars,
                              std::optional<double> wall_time) {
  ProtobufMessage summary;
  for (const EventScalar& scalar : scalars) {
    ProtobufMessage value;
    value.add_text(summary_field::kTag, scalar.tag);
    value.add_float(summary_field::kSimpleValue, scalar.value);
    summary.add_message(summary_field::kValue, value);
  }
  ProtobufMessage event = begin_event(wall_time.value_or(seconds_now()), step);
  event.add_message(event_field::kSummary, summary);
  file_->append(frame(event));
}

void EventWriter::add_histogram(std::int64_t step, std::string_view tag, const Histogram& histogram,
                                std::optional<double> wall_time) {
  ProtobufMessage content, value, summary;
  const double head[] = {histogram.min, histogram.max, histogram.count, histogram.sum, histogram.sum_of_squares};
  for (int field = 0; field < 5; ++field) content.add_double(field + 1, head[field]);
  content.add_packed(6, histogram.bucket_ends);
  content.add_packed(7, histogram.bucket_counts);
  value.add_text(summary_field::kTag, tag);
  value.add_message(summary_field::kHistogram, content);
  summary.add_message(summary_field::kValue, value);
  ProtobufMessage event = begin_event(wall_time.value_or(seconds_now()), step);
  event.add_message(event_field::kSummary, summary);
  file_->append(frame(event));
}

void EventWriter::flush() { file_->flush(); }
void EventWriter::sync() { file_->sync(); }
const fs::path& EventWriter::path() const { return file_->path(); }

}  // namespace norma
