// Labelled images of one size, read from files: IDX (MNIST and alike), CIFAR's binary layout, NPY.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace norma {

struct ImageSet {
  std::int64_t height = 0, width = 0, channels = 0;
  std::variant<std::vector<std::uint8_t>, std::vector<float>> pixels;  // [images, height, width, channels]
  std::vector<std::int32_t> labels;

  std::int64_t count() const { return static_cast<std::int64_t>(labels.size()); }
  std::int64_t elements() const { return height * width * channels; }  // of one image
  float pixel(std::int64_t index) const {
    const auto at = static_cast<std::size_t>(index);
    return pixels.index() == 0 ? static_cast<float>(std::get<0>(pixels)[at]) : std::get<1>(pixels)[at];
  }
};

// The images of one file, whose labels are in it (CIFAR) or in another: IDX with IDX, NPY with NPY. Throws Error for a
// file that is damaged, too short or of another format, and where images and labels differ in number.
ImageSet read_images(const std::string& path, const std::string& labels_path);

// The images from `first` on, `count` of them.
ImageSet part_of_images(const ImageSet& all, std::int64_t first, std::int64_t count);

}  // namespace norma
