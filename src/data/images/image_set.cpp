#include "data/images/image_set.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

#include "norma/core/error.h"
#include "norma/core/mapped_file.h"

namespace norma {
namespace {

constexpr std::int64_t kMostPixels = std::int64_t{1} << 32;  // of a file; keeps a damaged header from filling memory

// Numbers of a file as they are stored.
struct Array {
  std::vector<std::int64_t> shape;
  std::variant<std::vector<std::uint8_t>, std::vector<float>> values;
};

std::int64_t elements_of(const std::string& path, const std::vector<std::int64_t>& shape) {
  std::int64_t elements = 1;
  for (const std::int64_t size : shape) {
    if (size < 1 || size > kMostPixels / elements)
      fail("'{}' says that it is [{}]; expected sizes of at least 1 and at most {} numbers", path,
           fmt::join(shape, ", "), kMostPixels);
    elements *= size;
  }
  return elements;
}

void check_room(const std::string& path, std::size_t header, std::int64_t bytes, std::size_t size) {
  if (size < header || size - header != static_cast<std::size_t>(bytes))
    fail("'{}' has {} bytes; its header says {} and then {}", path, size, header, bytes);
}

// Big-endian: 0, 0, type, number of axes, then the axes.
Array read_idx(const MappedFile& file) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(file.data());
  if (bytes[2] != 8) fail("'{}' is an IDX file of type {}; expected 8, bytes", file.path(), bytes[2]);
  const std::size_t axes = bytes[3], header = 4 + 4 * axes;
  if (axes < 1 || axes > 4 || file.size() < header)
    fail("'{}' is an IDX file of {} axes and {} bytes; expected 1 to 4 axes", file.path(), axes, file.size());
  Array array;
  for (std::size_t axis = 0; axis < axes; ++axis) {
    std::int64_t size = 0;
    for (std::size_t i = 0; i < 4; ++i) size = size * 256 + bytes[4 + 4 * axis + i];
    array.shape.push_back(size);
  }
  check_room(file.path(), header, elements_of(file.path(), array.shape), file.size());
  array.values = std::vector<std::uint8_t>(bytes + header, bytes + file.size());
  return array;
}

std::string_view after(std::string_view text, std::string_view key, const std::string& path) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) fail("'{}' has no {} in its NPY header", path, key);
  return text.substr(at + key.size());
}

template <typename T>
std::vector<float> converted(const std::byte* from, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, from + i * sizeof(T), sizeof(T));
    values[i] = static_cast<float>(value);
  }
  return values;
}

std::vector<std::int64_t> npy_shape(std::string_view text, const std::string& path) {
  std::vector<std::int64_t> shape;
  text = text.substr(0, text.find(')'));
  std::int64_t size = -1;  // none is being read
  for (const char c : text) {
    if (c >= '0' && c <= '9' && size < kMostPixels) {
      size = std::max<std::int64_t>(size, 0) * 10 + (c - '0');
    } else if (size >= 0) {
      shape.push_back(size);
      size = -1;
    }
  }
  if (size >= 0) shape.push_back(size);
  if (shape.empty() || shape.size() > 4) fail("'{}' is an NPY array of {} axes; expected 1 to 4", path, shape.size());
  return shape;
}

// "\x93NUMPY", version, length of the header, the header as a Python dictionary, numbers.
Array read_npy(const MappedFile& file) {
  constexpr std::size_t kFixed = 10;
  static_assert(std::endian::native == std::endian::little);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(file.data());
  if (file.size() < kFixed || bytes[6] != 1) fail("'{}' is not an NPY file of version 1", file.path());
  const std::size_t header = kFixed + bytes[8] + 256u * bytes[9];
  if (file.size() < header) fail("'{}' ends within its NPY header", file.path());
  const std::string_view text = file.text().substr(kFixed, header - kFixed);
  if (after(text, "'fortran_order': ", file.path()).starts_with("True"))
    fail("'{}' is in Fortran order; expected C order", file.path());
  std::string_view type = after(text, "'descr': '", file.path());
  type = type.substr(0, type.find('\''));
  Array array{.shape = npy_shape(after(text, "'shape': (", file.path()), file.path()), .values = {}};
  const std::int64_t count = elements_of(file.path(), array.shape);
  const auto read = [&]<typename T>(T) {
    check_room(file.path(), header, count * static_cast<std::int64_t>(sizeof(T)), file.size());
    array.values = converted<T>(file.data() + header, count);
  };
  if (type == "|u1") {
    check_room(file.path(), header, count, file.size());
    array.values = std::vector<std::uint8_t>(bytes + header, bytes + file.size());
  } else if (type == "<f4") {
    read(float{});
  } else if (type == "<f8") {
    read(double{});
  } else if (type == "<i4") {
    read(std::int32_t{});
  } else if (type == "<i8") {
    read(std::int64_t{});
  } else {
    fail("'{}' is an NPY array of type '{}'; expected |u1, <i4, <i8, <f4 or <f8", file.path(), type);
  }
  return array;
}

bool is_npy(const MappedFile& file) { return file.text().starts_with("\x93NUMPY"); }
bool is_idx(const MappedFile& file) {
  return file.size() >= 4 && file.data()[0] == std::byte{0} && file.data()[1] == std::byte{0} &&
         file.data()[2] == std::byte{8} && file.data()[3] >= std::byte{1} && file.data()[3] <= std::byte{4};
}

Array read_array(const std::string& path, const char* what) {
  const MappedFile file(path, what);
  if (is_npy(file)) return read_npy(file);
  if (is_idx(file)) return read_idx(file);
  const bool packed = file.size() > 1 && file.data()[0] == std::byte{0x1f} && file.data()[1] == std::byte{0x8b};
  fail("'{}' is {}; expected an IDX or an NPY file with {}", path,
       packed ? "packed with gzip, which must be undone first" : "of no known format", what);
}

constexpr std::int64_t kCifarSide = 32, kCifarPlane = kCifarSide * kCifarSide, kCifarRecord = 1 + 3 * kCifarPlane;

// One byte of label, then planes of red, green and blue.
ImageSet read_cifar(const MappedFile& file) {
  ImageSet set{.height = kCifarSide, .width = kCifarSide, .channels = 3, .pixels = {}, .labels = {}};
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(file.data());
  const std::int64_t count = static_cast<std::int64_t>(file.size()) / kCifarRecord;
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(count * 3 * kCifarPlane));
  for (std::int64_t image = 0; image < count; ++image) {
    const std::uint8_t* const record = bytes + image * kCifarRecord;
    if (record[0] > 9) fail("'{}': image {} has the label {}; expected 0 to 9", file.path(), image, record[0]);
    set.labels.push_back(record[0]);
    std::uint8_t* const to = pixels.data() + image * 3 * kCifarPlane;
    for (std::int64_t p = 0; p < kCifarPlane; ++p) {
      for (std::int64_t c = 0; c < 3; ++c) to[p * 3 + c] = record[1 + c * kCifarPlane + p];
    }
  }
  set.pixels = std::move(pixels);
  return set;
}

std::vector<std::int32_t> read_labels(const std::string& path) {
  constexpr float kMostLabels = 100000;
  const Array array = read_array(path, "labels");
  if (array.shape.size() != 1) fail("'{}' is [{}]; expected one label an image", path, fmt::join(array.shape, ", "));
  std::vector<std::int32_t> labels;
  const auto add = [&](float label) {
    if (!(label >= 0 && label < kMostLabels) || label != static_cast<float>(static_cast<std::int32_t>(label)))
      fail("'{}': label {} is {}; expected a class from 0 on", path, labels.size(), label);
    labels.push_back(static_cast<std::int32_t>(label));
  };
  std::visit(
      [&](const auto& values) {
        for (const auto value : values) add(static_cast<float>(value));
      },
      array.values);
  return labels;
}

}  // namespace

ImageSet read_images(const std::string& path, const std::string& labels_path) {
  if (labels_path.empty()) {
    const MappedFile file(path, "images");
    const bool cifar = !is_npy(file) && !is_idx(file) && file.size() % kCifarRecord == 0;
    if (cifar) return read_cifar(file);
    if (is_npy(file) || is_idx(file)) fail("'{}' holds images alone; expected their labels in data.target_path", path);
    fail("'{}' has {} bytes, which are no records of {}, and is neither IDX nor NPY; expected images", path,
         file.size(), kCifarRecord);
  }
  Array array = read_array(path, "images");
  const std::size_t axes = array.shape.size();
  if (axes != 3 && axes != 4)
    fail("'{}' is [{}]; expected [images, height, width] or [images, height, width, channels]", path,
         fmt::join(array.shape, ", "));
  ImageSet set{.height = array.shape[1],
               .width = array.shape[2],
               .channels = axes == 4 ? array.shape[3] : 1,
               .pixels = std::move(array.values),
               .labels = read_labels(labels_path)};
  if (set.count() != array.shape[0])
    fail("'{}' has {} images but '{}' has {} labels", path, array.shape[0], labels_path, set.count());
  return set;
}

ImageSet part_of_images(const ImageSet& all, std::int64_t first, std::int64_t count) {
  ImageSet part{.height = all.height, .width = all.width, .channels = all.channels, .pixels = {}, .labels = {}};
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
