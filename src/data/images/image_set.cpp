#include "data/images/image_set.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <string_view>

#include "data/images/archive.h"
#include "data/images/arrays.h"
#include "data/images/folder.h"
#include "data/images/picture.h"
#include "data/images/resize.h"
#include "data/text_encoding.h"
#include "norma/core/error.h"
#include "norma/core/mapped_file.h"

namespace norma {
namespace {

// A file as it is, or as gzip unpacks it.
class FileBytes {
 public:
  FileBytes(const std::string& path, const char* what) : file_(path, what) {
    std::string_view name;
    packed_ = packing_of(file_.text(), name) == Packing::gzip;
    if (packed_) unpacked_ = unpack_gzip(file_.text(), path, static_cast<std::size_t>(kMostPixels));
  }
  const std::string& path() const { return file_.path(); }
  std::string_view bytes() const { return packed_ ? std::string_view(unpacked_) : file_.text(); }

 private:
  MappedFile file_;
  bool packed_ = false;
  std::string unpacked_;
};

// What arrays of an archive are called by those who write them; the last two are held out.
struct ArrayNames {
  const char *images, *labels, *held_images = nullptr, *held_labels = nullptr;
};
constexpr ArrayNames kArrayNames[] = {{"x_train", "y_train", "x_test", "y_test"},
                                      {"train_images", "train_labels", "val_images", "val_labels"},
                                      {"images", "labels"},
                                      {"x", "y"},
                                      {"X", "y"},
                                      {"data", "labels"},
                                      {"data", "target"},
                                      {"arr_0", "arr_1"}};

StoredArray read_entry(const Archive& archive, const std::string& name, const std::string& path) {
  const std::string bytes = archive.unpack(name);
  const std::string both = path + ": " + name;
  if (!is_npy(bytes)) fail("'{}' is no NPY array", both);
  return read_npy(bytes, both);
}

std::string names_in(const Archive& archive) {
  std::vector<std::string> names;
  for (const auto& [name, record] : archive.entries()) names.push_back(name);
  return names.empty() ? "nothing" : fmt::format("{}", fmt::join(names, ", "));
}

StoredArray read_array(const FileBytes& file, const char* what) {
  if (is_npy(file.bytes())) return read_npy(file.bytes(), file.path());
  if (is_idx(file.bytes())) return read_idx(file.bytes(), file.path());
  if (is_archive(file.bytes())) {
    const Archive archive(file.bytes(), file.path());
    if (archive.entries().size() != 1)
      fail("'{}' has {}; expected one array with {}", file.path(), names_in(archive), what);
    return read_entry(archive, archive.entries().begin()->first, file.path());
  }
  std::string_view name = "of no known format";
  packing_of(file.bytes(), name);
  fail("'{}' is {}; expected an IDX, NPY or NPZ file with {}", file.path(), name, what);
}

constexpr std::int64_t kCifarSide = 32, kCifarPlane = kCifarSide * kCifarSide, kCifarRecord = 1 + 3 * kCifarPlane;

// One byte of label, then planes of red, green and blue.
ImageSet read_cifar(std::string_view bytes, const std::string& path) {
  ImageSet set{.height = kCifarSide, .width = kCifarSide, .channels = 3};
  const std::int64_t count = static_cast<std::int64_t>(bytes.size()) / kCifarRecord;
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(count * 3 * kCifarPlane));
  for (std::int64_t image = 0; image < count; ++image) {
    const auto* const record = reinterpret_cast<const std::uint8_t*>(bytes.data()) + image * kCifarRecord;
    if (record[0] > 9) fail("'{}': image {} has the label {}; expected 0 to 9", path, image, record[0]);
    set.labels.push_back(record[0]);
    std::uint8_t* const to = pixels.data() + image * 3 * kCifarPlane;
    for (std::int64_t p = 0; p < kCifarPlane; ++p) {
      for (std::int64_t c = 0; c < 3; ++c) to[p * 3 + c] = record[1 + c * kCifarPlane + p];
    }
  }
  set.pixels = std::move(pixels);
  return set;
}

std::vector<std::int32_t> labels_of(const StoredArray& array, const std::string& path) {
  constexpr float kLargestLabel = 99'999;
  const bool single = array.shape.size() == 1 || (array.shape.size() == 2 && array.shape[1] == 1);
  if (!single) fail("'{}' is [{}]; expected one label an image", path, fmt::join(array.shape, ", "));
  std::vector<std::int32_t> labels;
  const auto add = [&](float label) {
    if (!(label >= 0 && label <= kLargestLabel) || label != static_cast<float>(static_cast<std::int32_t>(label)))
      fail("'{}': label {} is {}; expected a whole number from 0 to {}", path, labels.size(), label, kLargestLabel);
    labels.push_back(static_cast<std::int32_t>(label));
  };
  std::visit(
      [&](const auto& values) {
        for (const auto value : values) add(static_cast<float>(value));
      },
      array.values);
  return labels;
}

ImageSet images_of(StoredArray array, const std::string& path) {
  const std::size_t axes = array.shape.size();
  if (axes != 3 && axes != 4)
    fail("'{}' is [{}]; expected [images, height, width] or [images, height, width, channels]", path,
         fmt::join(array.shape, ", "));
  if (const auto* numbers = std::get_if<std::vector<float>>(&array.values)) {
    const auto bad = std::ranges::find_if(*numbers, [](float value) { return !std::isfinite(value); });
    if (bad != numbers->end()) {
      const std::int64_t image = (bad - numbers->begin()) / (std::ssize(*numbers) / array.shape[0]);
      fail("'{}': image {} holds {}; expected finite numbers", path, image, *bad);
    }
  }
  return {.height = array.shape[1],
          .width = array.shape[2],
          .channels = axes == 4 ? array.shape[3] : 1,
          .pixels = std::move(array.values),
          .labels = std::vector<std::int32_t>(static_cast<std::size_t>(array.shape[0]), 0)};
}

void give_labels(ImageSet& set, const std::string& path, const StoredArray& array, const std::string& labels_path) {
  const std::int64_t images = set.count();
  set.labels = labels_of(array, labels_path);
  if (set.count() != images) fail("'{}' has {} images but '{}' has {} labels", path, images, labels_path, set.count());
}

ImageSet read_archive(const FileBytes& file, ImagePart part) {
  const Archive archive(file.bytes(), file.path());
  const auto entry_of = [&](const char* name) { return std::string(name) + ".npy"; };
  for (const ArrayNames& names : kArrayNames) {
    const bool held = part == ImagePart::held_out && names.held_images != nullptr &&
                      archive.entries().contains(entry_of(names.held_images));
    const std::string images = entry_of(held ? names.held_images : names.images),
                      labels = entry_of(held ? names.held_labels : names.labels);
    if (!archive.entries().contains(images) || !archive.entries().contains(labels)) continue;
    ImageSet set = images_of(read_entry(archive, images, file.path()), file.path() + ": " + images);
    give_labels(set, file.path() + ": " + images, read_entry(archive, labels, file.path()),
                file.path() + ": " + labels);
    return set;
  }
  fail("'{}' has {}; expected images and labels under names such as x_train and y_train, images and labels, x and y",
       file.path(), names_in(archive));
}

void resize_all(ImageSet& set, std::int64_t side) {
  if (side == 0 || (set.height == side && set.width == side)) return;
  std::visit(
      [&](auto& pixels) {
        std::decay_t<decltype(pixels)> all;
        for (std::int64_t image = 0; image < set.count(); ++image) {
          const auto one = resized(pixels.data() + image * set.elements(), set.height, set.width, set.channels, side);
          all.insert(all.end(), one.begin(), one.end());
        }
        pixels = std::move(all);
      },
      set.pixels);
  set.height = set.width = side;
}

ImageSet read_file(const std::string& path, const std::string& labels_path, ImagePart part) {
  const FileBytes file(path, "images");
  if (is_picture(file.bytes()))
    fail("'{}' is one picture; expected a folder of them, with a folder for each class or labels in data.target_path",
         path);
  if (!labels_path.empty()) {
    ImageSet set = images_of(read_array(file, "images"), path);
    give_labels(set, path, read_array(FileBytes(labels_path, "labels"), "labels"), labels_path);
    return set;
  }
  if (is_archive(file.bytes())) return read_archive(file, part);
  if (is_npy(file.bytes()) || is_idx(file.bytes()))
    fail("'{}' holds images alone; expected their labels in data.target_path", path);
  std::string_view name;
  if (packing_of(file.bytes(), name) == Packing::other) fail("'{}' is {}, which must be unpacked first", path, name);
  if (file.bytes().size() % kCifarRecord != 0)
    fail(
        "'{}' has {} bytes, which is not a whole number of records of {}, and is neither IDX, NPY nor NPZ; expected "
        "images",
        path, file.bytes().size(), kCifarRecord);
  return read_cifar(file.bytes(), path);
}

}  // namespace

ImageSet read_images(const std::string& path, const std::string& labels_path, const ImageForm& form, ImagePart part,
                     const std::vector<std::string>& known) {
  if (path.empty()) fail("no images were given; set data.path");
  if (std::filesystem::is_directory(path))
    return labels_path.empty() ? read_class_folders(path, form, known)
                               : read_labelled_folder(path, labels_path, form, known);
  ImageSet set = read_file(path, labels_path, part);
  resize_all(set, form.side);
  return set;
}

bool has_held_out_images(const std::string& path) {
  if (std::filesystem::is_directory(path)) return false;
  const FileBytes file(path, "images");
  if (!is_archive(file.bytes())) return false;
  const Archive archive(file.bytes(), path);
  return std::any_of(std::begin(kArrayNames), std::end(kArrayNames), [&](const ArrayNames& names) {
    return names.held_images != nullptr && archive.entries().contains(names.held_images + std::string(".npy"));
  });
}

ImageSet read_unlabelled(const std::string& path, const ImageForm& form, std::vector<std::string>& names) {
  if (std::filesystem::is_directory(path)) return read_pictures(path, form, names);
  const FileBytes file(path, "images");
  if (is_picture(file.bytes())) return read_pictures(path, form, names);
  const bool cifar = !is_npy(file.bytes()) && !is_idx(file.bytes()) && !is_archive(file.bytes()) &&
                     file.bytes().size() % kCifarRecord == 0;
  ImageSet set = cifar ? read_cifar(file.bytes(), path) : images_of(read_array(file, "images"), path);
  resize_all(set, form.side);
  for (std::int64_t i = 0; i < set.count(); ++i) names.push_back(fmt::format("{}:{}", path, i));
  return set;
}

ImageSet part_of_images(const ImageSet& all, std::int64_t first, std::int64_t count) {
  ImageSet part{.height = all.height, .width = all.width, .channels = all.channels, .classes = all.classes};
  part.labels.assign(all.labels.begin() + first, all.labels.begin() + first + count);
  std::visit(
      [&](const auto& pixels) {
        const auto begin = pixels.begin() + first * all.elements();
        part.pixels = std::decay_t<decltype(pixels)>(begin, begin + count * all.elements());
      },
      all.pixels);
  return part;
}

}  // namespace norma
