// How images of a file become what a model reads, as a run keeps it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace norma {

struct ImageReading {
  std::int64_t height = 0, width = 0, channels = 0;
  std::int64_t side = 0;           // pictures of another size become squares of this one; 0: they are refused
  std::int64_t form_channels = 0;  // 1: coloured pictures become grey, 3: grey ones coloured; 0: they are refused
  std::vector<float> mean = {}, scale = {};  // of each channel: a pixel becomes (pixel - mean) scale
};

struct NamedImages {
  std::vector<std::string> names;
  std::vector<float> numbers;  // [images, height, width, channels]
};

// A PNG or JPEG file, a folder of them, or the images of an IDX, NPY, NPZ or CIFAR file. Throws Error, naming both
// sizes, where they are of another size.
NamedImages read_images_as(const ImageReading& reading, const std::string& path);

}  // namespace norma
