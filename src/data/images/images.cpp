#include "data/images/images.h"

#include <algorithm>
#include <cmath>

#include "data/permutation.h"
#include "data/settings.h"
#include "data/text_file.h"
#include "norma/core/error.h"

namespace norma {
namespace {

void normalise(const ImageSet& set, std::int64_t image, const ImageReading& reading, float* to) {
  const auto channels = static_cast<std::size_t>(set.channels);
  for (std::int64_t i = 0; i < set.elements(); ++i) {
    const std::size_t c = static_cast<std::size_t>(i) % channels;
    to[i] = (set.pixel(image * set.elements() + i) - reading.mean[c]) * reading.scale[c];
  }
}

// From Beta(a, a), 0 < a <= 1, by Johnk's method: of two numbers u^(1/a) whose sum is below 1 the share of the first.
// In logarithms, since for small a both are too small for a double.
double beta_draw(Draws& draws, double a) {
  for (;;) {
    const double x = std::log(draws.unit()) / a, y = std::log(draws.unit()) / a;
    if (std::exp(x) + std::exp(y) <= 1) return 1 / (1 + std::exp(y - x));
  }
}

}  // namespace

Images::Images(const DataConfig& config, const BatchShape& shape)
    : shape_(shape),
      name_(config.path),
      crop_(whole_setting(config, "crop", 0, 0, 64)),
      hole_(whole_setting(config, "cutout", 0, 0, 256)),
      flip_(whole_setting(config, "flip", 0, 0, 1) == 1),
      mixup_(number_setting(config, "mixup", 0, 0, 1)) {
  read(config);
  check_variation();
  check_labels(config);
  measure();
  const std::int64_t all = (validation_.count() + shape.batch - 1) / shape.batch;
  evaluation_batches_ = config.evaluation_batches == 0 ? all : std::min(all, config.evaluation_batches);
}

void Images::read(const DataConfig& config) {
  constexpr std::int64_t kLargestSide = 4096;
  const ImageForm form{.side = whole_setting(config, "resize", 0, 0, kLargestSide),
                       .channels = whole_setting(config, "channels", 0, 0, 3)};
  if (form.channels == 2) fail("data.settings.channels is 2; expected 1 (grey), 3 (colours) or 0 (as the files are)");
  training_ = read_images(config.path, config.target_path, form);
  reading_ = {.height = training_.height,
              .width = training_.width,
              .channels = training_.channels,
              .side = form.side,
              .form_channels = form.channels};
  const bool both = config.validation_path.empty() && config.target_path.empty() && has_held_out_images(config.path);
  if (config.validation_path.empty() && !both) return hold_out(config);
  const std::string& held = both ? config.path : config.validation_path;
  validation_ = read_images(held, config.validation_target_path, form, ImagePart::held_out, training_.classes);
  const auto size = [](const ImageSet& set) {
    return fmt::format("{} x {} x {}", set.height, set.width, set.channels);
  };
  if (size(training_) != size(validation_))
    fail(
        "'{}' has images of {} to train on but '{}' held-out ones of {} (height x width x channels); expected one size",
        config.path, size(training_), held, size(validation_));
}

void Images::hold_out(const DataConfig& config) {
  check_validation_fraction(config.validation_fraction);
  const std::int64_t count = training_.count();
  const auto held = static_cast<std::int64_t>(std::ceil(static_cast<double>(count) * config.validation_fraction));
  if (held < 1 || held >= count)
    fail("'{}' gives {} images to train on and {} held out; expected some of each", config.path, count - held, held);
  validation_ = part_of_images(training_, count - held, held);
  training_ = part_of_images(training_, 0, count - held);
}

// So that something of every image is left.
void Images::check_variation() const {
  const std::int64_t most = std::min(training_.height, training_.width) - 1;
  for (const auto& [name, pixels] : {std::pair{"crop", crop_}, {"cutout", hole_}}) {
    if (pixels > most)
      fail("data.settings.{} is {}, but the images are {} x {} (height x width); expected at most {}", name, pixels,
           training_.height, training_.width, most);
  }
}

void Images::check_labels(const DataConfig& config) {
  classes_ = training_.classes.empty() ? 1 + *std::max_element(training_.labels.begin(), training_.labels.end())
                                       : std::ssize(training_.classes);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(classes_), 0);
  for (const std::int32_t label : training_.labels) ++counts[static_cast<std::size_t>(label)];
  const auto empty = std::find(counts.begin(), counts.end(), 0);
  if (empty != counts.end()) {
    const auto label = static_cast<std::int32_t>(empty - counts.begin());
    const std::string word = labels()[static_cast<std::size_t>(label)];
    if (config.validation_path.empty() && std::ranges::find(validation_.labels, label) != validation_.labels.end())
      fail("'{}' has too few images of class {}: all of them are held out, and none is left to train on", name_, word);
    fail("'{}' has no image of class {} to train on, but of classes up to {}", name_, word, labels().back());
  }
  if (classes_ < 2) fail("'{}' has images of one class only; expected at least two", name_);
  for (const std::int32_t label : validation_.labels) {
    if (label >= classes_)
      fail("'{}' has a label {}, but the images to train on have 0 to {}",
           config.validation_path.empty() ? name_ : config.validation_path, label, classes_ - 1);
  }
}

void Images::measure() {
  const auto channels = static_cast<std::size_t>(training_.channels);
  // All relative to the first pixel: of a constant channel nothing may be left that rounding made.
  std::vector<float> first;
  for (std::size_t c = 0; c < channels; ++c) first.push_back(training_.pixel(static_cast<std::int64_t>(c)));
  std::vector<double> sum(channels, 0), squares(channels, 0);
  const std::int64_t elements = training_.count() * training_.elements();
  for (std::int64_t i = 0; i < elements; ++i) {
    const double value = training_.pixel(i) - first[static_cast<std::size_t>(i) % channels];
    sum[static_cast<std::size_t>(i) % channels] += value;
    squares[static_cast<std::size_t>(i) % channels] += value * value;
  }
  const double count = static_cast<double>(elements) / static_cast<double>(channels);
  for (std::size_t c = 0; c < channels; ++c) {
    const double mean = sum[c] / count, variance = squares[c] / count - mean * mean;
    reading_.mean.push_back(static_cast<float>(first[c] + mean));
    reading_.scale.push_back(variance > 0 ? static_cast<float>(1 / std::sqrt(variance)) : 1.0f);
  }
}

std::map<std::string, std::int64_t> Images::sizes() const {
  return {{"classes", classes_},
          {"image_height", training_.height},
          {"image_width", training_.width},
          {"image_channels", training_.channels}};
}

std::vector<std::string> Images::labels() const {
  if (!training_.classes.empty()) return training_.classes;
  std::vector<std::string> numbers;
  for (std::int64_t c = 0; c < classes_; ++c) numbers.push_back(std::to_string(c));
  return numbers;
}

void Images::clear(Batch& batch) const {
  std::ranges::fill(batch.numbers("image", image_shape()), 0.0f);
  std::ranges::fill(batch.ids("targets", {shape_.batch}), kIgnored);
  if (mixup_ == 0) return;
  std::ranges::fill(batch.ids("mixed_targets", {shape_.batch}), kIgnored);
  std::ranges::fill(batch.numbers("mixture", {1}), 0.0f);
}

void Images::write(const ImageSet& set, std::int64_t image, std::int64_t row, Batch& batch) const {
  normalise(set, image, reading_, batch.numbers("image", image_shape()).data() + row * set.elements());
  batch.ids("targets")[static_cast<std::size_t>(row)] = set.labels[static_cast<std::size_t>(image)];
}

// A crop of the image in a frame of zeros, turned left to right or not, with a square of zeros: the mean is 0.
void Images::vary(Draws& draws, float* image) const {
  const std::int64_t h = training_.height, w = training_.width, channels = training_.channels;
  const auto shift = [&] {
    return static_cast<std::int64_t>(draws.below(static_cast<std::uint32_t>(2 * crop_ + 1))) - crop_;
  };
  const std::int64_t down = shift(), right = shift();
  const bool flipped = flip_ && draws.below(2) == 1;
  const std::int64_t top = draws.below(static_cast<std::uint32_t>(h)) - hole_ / 2,
                     left = draws.below(static_cast<std::uint32_t>(w)) - hole_ / 2;
  thread_local std::vector<float> whole;  // no memory is taken from the second image on
  whole.assign(image, image + h * w * channels);
  for (std::int64_t row = 0; row < h; ++row) {
    for (std::int64_t column = 0; column < w; ++column) {
      const std::int64_t from_row = row + down, from_column = (flipped ? w - 1 - column : column) + right;
      const bool outside = from_row < 0 || from_row >= h || from_column < 0 || from_column >= w;
      const bool blank = row >= top && row < top + hole_ && column >= left && column < left + hole_;
      for (std::int64_t c = 0; c < channels; ++c)
        image[(row * w + column) * channels + c] =
            outside || blank ? 0.0f : whole[static_cast<std::size_t>((from_row * w + from_column) * channels + c)];
    }
  }
}

// Every image becomes (1 - share) of itself and `share` of another of its batch, one share for the batch (Zhang et al.
// 2018, arXiv 1710.09412); its loss is mixed the same way.
void Images::mix(std::uint64_t index, std::uint64_t seed, Batch& batch) const {
  Draws draws(seed, hash_name("data.images.mixed"), index, 0);
  const auto share = static_cast<float>(beta_draw(draws, mixup_));
  const Permutation partner(static_cast<std::uint64_t>(shape_.batch), seed ^ hash_name("data.images.partner"), index);
  Batch::Numbers& images = batch.numbers("image", image_shape());
  const Batch::Ids& targets = batch.ids("targets");
  Batch::Ids& mixed = batch.ids("mixed_targets", {shape_.batch});
  thread_local std::vector<float> plain;
  plain.assign(images.begin(), images.end());
  const auto elements = static_cast<std::size_t>(training_.elements());
  for (std::size_t row = 0; row < targets.size(); ++row) {
    const std::size_t other = partner(row);
    mixed[row] = targets[other];
    for (std::size_t i = 0; i < elements; ++i)
      images[row * elements + i] = (1 - share) * plain[row * elements + i] + share * plain[other * elements + i];
  }
  batch.numbers("mixture", {1})[0] = share;
}

void Images::fill(std::uint64_t index, std::uint64_t seed, Batch& batch) const {
  clear(batch);
  const auto images = static_cast<std::uint64_t>(training_.count());
  const bool varied = crop_ > 0 || flip_ || hole_ > 0;
  for (std::int64_t row = 0; row < shape_.batch; ++row) {
    const std::uint64_t sample = index * static_cast<std::uint64_t>(shape_.batch) + static_cast<std::uint64_t>(row);
    const Permutation permutation(images, seed, sample / images);
    write(training_, static_cast<std::int64_t>(permutation(sample % images)), row, batch);
    if (!varied) continue;
    Draws draws(seed, hash_name("data.images.varied"), index, static_cast<std::uint32_t>(row));
    vary(draws, batch.numbers("image", image_shape()).data() + row * training_.elements());
  }
  if (mixup_ > 0) mix(index, seed, batch);
}

void Images::fill_evaluation(std::int64_t index, Batch& batch) const {
  NORMA_ASSERT(index >= 0 && index < evaluation_batches_);
  clear(batch);
  // Where not all are shown, those that are lie evenly over the part.
  const std::int64_t shown = std::min(validation_.count(), evaluation_batches_ * shape_.batch);
  for (std::int64_t row = 0; row < shape_.batch; ++row) {
    const std::int64_t place = index * shape_.batch + row;
    if (place < shown) write(validation_, place * validation_.count() / shown, row, batch);
  }
  // Its own targets once more: a loss without any target would be no number, and no share of it a 0.
  if (mixup_ > 0) batch.ids("mixed_targets", {shape_.batch}) = batch.ids("targets");
}

std::string Images::describe() const {
  return fmt::format("images: {} of {} x {} x {} in {} classes, {} held out ('{}')", training_.count(),
                     training_.height, training_.width, training_.channels, classes_, validation_.count(), name_);
}

NamedImages read_images_as(const ImageReading& reading, const std::string& path) {
  NamedImages all;
  const ImageSet set = read_unlabelled(path, {.side = reading.side, .channels = reading.form_channels}, all.names);
  if (set.height != reading.height || set.width != reading.width || set.channels != reading.channels)
    fail("'{}' has images of {} x {} x {}; the model was trained on {} x {} x {} (height x width x channels)", path,
         set.height, set.width, set.channels, reading.height, reading.width, reading.channels);
  all.numbers.resize(static_cast<std::size_t>(set.count() * set.elements()));
  for (std::int64_t i = 0; i < set.count(); ++i) normalise(set, i, reading, all.numbers.data() + i * set.elements());
  return all;
}

}  // namespace norma
