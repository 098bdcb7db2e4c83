#include "data/shapes/shapes.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string_view>

#include "data/settings.h"
#include "norma/core/error.h"

namespace norma {
namespace {

constexpr std::int64_t kSide = 5, kPixels = kSide * kSide;
constexpr std::string_view kDrawings[] = {
    "#####"
    "#...#"
    "#...#"
    "#...#"
    "#####",
    "..#.."
    "..#.."
    "#####"
    "..#.."
    "..#..",
    "#...#"
    ".#.#."
    "..#.."
    ".#.#."
    "#...#",
    "#####"
    "..#.."
    "..#.."
    "..#.."
    "..#..",
    "#...."
    "#...."
    "#...."
    "#...."
    "#####",
    "..#.."
    ".#.#."
    "#...#"
    ".#.#."
    "..#..",
    "#...#"
    "#...#"
    "#...#"
    "#...#"
    "#####",
    "#####"
    "...#."
    "..#.."
    ".#..."
    "#####"};

}  // namespace

Shapes::Shapes(const DataConfig& config, const BatchShape& shape)
    : GeneratedSource("shapes", shape, config.evaluation_batches),
      classes_(whole_setting(config, "classes", 4, 2, std::size(kDrawings))),
      size_(whole_setting(config, "size", 16, kSide, 256)),
      channels_(whole_setting(config, "channels", 1, 1, 16)),
      contrast_(number_setting(config, "contrast", 7, 0.1, 100)) {
  for (std::int64_t k = 0; k < classes_; ++k) {
    const std::string_view drawing = kDrawings[k];
    const double pixels = static_cast<double>(std::count(drawing.begin(), drawing.end(), '#') * channels_);
    for (const char pixel : drawing)
      templates_.push_back(pixel == '#' ? static_cast<float>(contrast_ / std::sqrt(pixels)) : 0.0f);
  }
}

std::map<std::string, std::int64_t> Shapes::sizes() const {
  return {{"classes", classes_}, {"image_height", size_}, {"image_width", size_}, {"image_channels", channels_}};
}

void Shapes::clear(Batch& batch) const {
  batch.numbers("image", image_shape());
  batch.ids("targets", {shape().batch});
}

std::int32_t Shapes::draw(Draws& draws, float* image) const {
  const auto label = static_cast<std::int64_t>(draws.below(static_cast<std::uint32_t>(classes_)));
  const auto places = static_cast<std::uint32_t>(size_ - kSide + 1);
  const std::int64_t top = draws.below(places), left = draws.below(places);
  for (std::int64_t i = 0; i < size_ * size_ * channels_; ++i) image[i] = static_cast<float>(normal_draw(draws));
  const float* const pattern = templates_.data() + label * kPixels;
  for (std::int64_t p = 0; p < kPixels; ++p) {
    float* const pixel = image + ((top + p / kSide) * size_ + left + p % kSide) * channels_;
    for (std::int64_t c = 0; c < channels_; ++c) pixel[c] += pattern[p];
  }
  return static_cast<std::int32_t>(label);
}

void Shapes::write(Draws& draws, std::int64_t row, Batch& batch) const {
  float* const image = batch.numbers("image", image_shape()).data() + row * size_ * size_ * channels_;
  batch.ids("targets")[static_cast<std::size_t>(row)] = draw(draws, image);
}

std::vector<double> Shapes::posterior(const float* image) const {
  std::vector<double> grey(static_cast<std::size_t>(size_ * size_), 0);  // all shapes have the same in each channel
  for (std::size_t i = 0; i < grey.size() * static_cast<std::size_t>(channels_); ++i)
    grey[i / static_cast<std::size_t>(channels_)] += image[i];
  std::vector<double> chances;
  double sum = 0;
  for (std::int64_t k = 0; k < classes_; ++k) {
    double chance = 0;
    for (std::int64_t top = 0; top + kSide <= size_; ++top) {
      for (std::int64_t left = 0; left + kSide <= size_; ++left) {
        double match = 0;
        for (std::int64_t p = 0; p < kPixels; ++p)
          match += templates_[static_cast<std::size_t>(k * kPixels + p)] *
                   grey[static_cast<std::size_t>((top + p / kSide) * size_ + left + p % kSide)];
        chance += std::exp(match - contrast_ * contrast_);  // the same factor everywhere: keeps it in range
      }
    }
    chances.push_back(chance);
    sum += chance;
  }
  for (double& chance : chances) chance /= sum;
  return chances;
}

const Shapes::Best& Shapes::best() const {
  std::call_once(known_, [this] {
    constexpr std::uint32_t kImages = 8192;
    std::vector<float> image(static_cast<std::size_t>(size_ * size_ * channels_));
    double sum = 0, squares = 0, entropy = 0;
    for (std::uint32_t i = 0; i < kImages; ++i) {
      Draws draws(0, hash_name("data.shapes.best"), 0, i);
      draw(draws, image.data());
      const std::vector<double> chances = posterior(image.data());
      const double largest = *std::max_element(chances.begin(), chances.end());
      sum += largest;
      squares += largest * largest;
      for (const double p : chances) entropy -= p > 0 ? p * std::log(p) : 0;
    }
    const double mean = sum / kImages;
    best_ = {mean, std::sqrt(std::max(0.0, squares / kImages - mean * mean) / kImages), entropy / kImages};
  });
  return best_;
}

const GaussianMixture* Shapes::mixture() const {
  constexpr std::int64_t kMostNumbers = std::int64_t{1} << 24;  // of all means; larger images are not worth the wait
  const std::int64_t places = size_ - kSide + 1, pixels = size_ * size_ * channels_;
  if (classes_ * places * places > kMostNumbers / pixels) return nullptr;
  std::call_once(mixed_, [this] {
    mixture_.dimensions = size_ * size_ * channels_;
    for (std::int64_t k = 0; k < classes_; ++k) {
      for (std::int64_t top = 0; top + kSide <= size_; ++top) {
        for (std::int64_t left = 0; left + kSide <= size_; ++left) {
          const std::size_t first = mixture_.means.size();
          mixture_.means.resize(first + static_cast<std::size_t>(mixture_.dimensions), 0);
          mixture_.classes.push_back(static_cast<std::int32_t>(k));
          for (std::int64_t p = 0; p < kPixels; ++p) {
            const std::int64_t pixel = (top + p / kSide) * size_ + left + p % kSide;
            std::fill_n(mixture_.means.begin() + static_cast<std::ptrdiff_t>(first) + pixel * channels_, channels_,
                        templates_[static_cast<std::size_t>(k * kPixels + p)]);
          }
        }
      }
    }
  });
  return &mixture_;
}

std::string Shapes::describe() const {
  return fmt::format(
      "shapes: {} shapes in images of {} x {} x {}, contrast {:.3g}; best accuracy {:.4f} +- {:.4f}, loss {:.4f}",
      classes_, size_, size_, channels_, contrast_, best().accuracy, best().accuracy_error, best().loss);
}

}  // namespace norma
