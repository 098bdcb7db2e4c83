// Labelled images of one size, read from files: IDX (MNIST and alike), CIFAR's binary layout, NPY and NPZ, and folders
// of PNG and JPEG files.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace norma {

struct ImageSet {
  std::int64_t height = 0, width = 0, channels = 0;
  std::variant<std::vector<std::uint8_t>, std::vector<float>> pixels = {};  // [images, height, width, channels]
  std::vector<std::int32_t> labels = {};
  std::vector<std::string> classes = {};  // their names; empty where they have numbers alone

  std::int64_t count() const { return static_cast<std::int64_t>(labels.size()); }
  std::int64_t elements() const { return height * width * channels; }  // of one image
  float pixel(std::int64_t index) const {
    const auto at = static_cast<std::size_t>(index);
    return pixels.index() == 0 ? static_cast<float>(std::get<0>(pixels)[at]) : std::get<1>(pixels)[at];
  }
};

// How images are brought to one form.
struct ImageForm {
  std::int64_t side = 0;      // every image becomes a square of this side; 0: as it is, and all must be alike
  std::int64_t channels = 0;  // of PNG and JPEG: 1 grey, 3 colours; 0: as they are, and all must be alike
};

enum class ImagePart { training, held_out };  // of an archive that has both

// The images of one file or folder, whose labels are in it (CIFAR, NPZ, a folder of folders) or in another file: IDX or
// NPY with IDX or NPY, a folder with a table of names and labels. Files may be packed with gzip. `known` are the
// classes of the images to train on, where these are held out. Throws Error for a file that is damaged, too short or of
// another format, images of two sizes, a class without images, and where images and labels differ in number.
ImageSet read_images(const std::string& path, const std::string& labels_path, const ImageForm& form,
                     ImagePart part = ImagePart::training, const std::vector<std::string>& known = {});

// Whether the archive at `path` has images that are held out as well.
bool has_held_out_images(const std::string& path);

// Images without labels: a picture, a folder of them, or all of an array. `names` receives what each is called.
ImageSet read_unlabelled(const std::string& path, const ImageForm& form, std::vector<std::string>& names);

// The images from `first` on, `count` of them.
ImageSet part_of_images(const ImageSet& all, std::int64_t first, std::int64_t count);

}  // namespace norma
