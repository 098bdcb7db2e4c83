#include "data/images/folder.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "data/images/arrays.h"
#include "data/images/picture.h"
#include "data/images/resize.h"
#include "data/lines.h"
#include "data/table.h"
#include "data/text_file.h"
#include "norma/core/error.h"
#include "norma/core/mapped_file.h"
#include "norma/core/names.h"

namespace norma {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostImageClasses = 100000;

// What lies in a folder, in order; files that the system hides are passed over.
std::vector<fs::path> contents_of(const fs::path& folder) {
  std::vector<fs::path> all;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (!it->path().filename().string().starts_with('.')) all.push_back(it->path());
  }
  if (error) fail("cannot read the folder '{}': {}", folder.string(), error.message());
  std::sort(all.begin(), all.end());
  return all;
}

// Takes pictures one after another and holds them to one form.
class Pictures {
 public:
  explicit Pictures(const ImageForm& form) : form_(form) {}

  void add(const fs::path& file) {
    const MappedFile bytes(file, "a PNG or JPEG file");
    Picture picture = with_channels(read_picture(bytes.text(), file.string()), form_.channels);
    if (form_.side > 0) {
      picture.pixels = resized(picture.pixels.data(), picture.height, picture.width, picture.channels, form_.side);
      picture.height = picture.width = form_.side;
    }
    check(picture, file.string());
    if (pixels_.size() + picture.pixels.size() > static_cast<std::size_t>(kMostPixels))
      fail("'{}' and the images before it have more than {} pixels in all", file.string(), kMostPixels);
    pixels_.insert(pixels_.end(), picture.pixels.begin(), picture.pixels.end());
  }

  ImageSet take(std::vector<std::int32_t> labels, std::vector<std::string> classes) {
    return {.height = height_,
            .width = width_,
            .channels = channels_,
            .pixels = std::move(pixels_),
            .labels = std::move(labels),
            .classes = std::move(classes)};
  }

 private:
  void check(const Picture& picture, const std::string& file) {
    if (first_.empty()) {
      first_ = file;
      height_ = picture.height, width_ = picture.width, channels_ = picture.channels;
    }
    if (picture.height != height_ || picture.width != width_)
      fail("'{}' is {} x {} but '{}' {} x {} (height x width); expected one size, or data.settings.resize", file,
           picture.height, picture.width, first_, height_, width_);
    if (picture.channels != channels_)
      fail("'{}' is {} but '{}' is {}; expected one of both, or data.settings.channels (1 or 3)", file,
           picture.channels == 1 ? "grey" : "coloured", first_, channels_ == 1 ? "grey" : "coloured");
  }

  ImageForm form_;
  std::string first_;
  std::int64_t height_ = 0, width_ = 0, channels_ = 0;
  std::vector<std::uint8_t> pixels_;
};

struct NamedImage {
  fs::path file;
  std::int32_t label = 0;
};

std::int32_t class_of(const std::string& name, const std::vector<std::string>& classes, const std::string& where) {
  const auto found = std::find(classes.begin(), classes.end(), name);
  if (found == classes.end())
    fail("'{}' has the class '{}', which no image to train on has{}; known are {}", where, name,
         did_you_mean(name, classes), fmt::join(classes, ", "));
  return static_cast<std::int32_t>(found - classes.begin());
}

// Classes take turns, each as often as it has images: any share of the end has the same share of every class.
void mix_classes(std::vector<NamedImage>& images, std::size_t classes) {
  std::vector<double> count(classes, 0), seen(classes, 0);
  for (const NamedImage& image : images) ++count[static_cast<std::size_t>(image.label)];
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < images.size(); ++i) {
    const auto label = static_cast<std::size_t>(images[i].label);
    order.emplace_back((seen[label] += 1) / (count[label] + 1), i);
  }
  std::sort(order.begin(), order.end());
  std::vector<NamedImage> mixed;
  for (const auto& [place, index] : order) mixed.push_back(images[index]);
  images = std::move(mixed);
}

ImageSet read_named(const std::vector<NamedImage>& images, std::vector<std::string> classes, const ImageForm& form) {
  Pictures pictures(form);
  std::vector<std::int32_t> labels;
  for (const NamedImage& image : images) {
    pictures.add(image.file);
    labels.push_back(image.label);
  }
  return pictures.take(std::move(labels), std::move(classes));
}

std::vector<std::string> sorted_classes(const std::set<std::string>& distinct) {
  std::vector<std::string> classes(distinct.begin(), distinct.end());
  std::sort(classes.begin(), classes.end(), by_number_then_text);
  return classes;
}

struct TableLine {
  std::string file, label;
};

// "file,label" or "file<tab>label"; a first line whose file is not there names columns.
std::vector<TableLine> read_label_table(const std::string& folder, const std::string& table) {
  const auto text = open_text_file(table, "a table of files and labels");
  std::vector<TableLine> all;
  std::size_t number = 0;
  for (const std::string_view line : split_lines(text->text())) {
    ++number;
    if (trim(line).empty()) continue;
    const std::size_t cut = line.find('\t') != std::string_view::npos ? line.find('\t') : line.rfind(',');
    if (cut == std::string_view::npos)
      fail("'{}', line {}: '{}' has no tab and no comma; expected a file and its label", table, number,
           line.substr(0, 80));
    TableLine one{std::string(trim(line.substr(0, cut))), std::string(trim(line.substr(cut + 1)))};
    const bool there = fs::is_regular_file(fs::path(folder) / one.file);
    if (!there && number == 1) continue;
    if (!there) fail("'{}', line {}: there is no '{}' in '{}'", table, number, one.file, folder);
    if (one.label.empty()) fail("'{}', line {}: '{}' has no label", table, number, one.file);
    all.push_back(std::move(one));
  }
  if (all.empty()) fail("'{}' names no image of '{}'", table, folder);
  return all;
}

void find_pictures(const fs::path& folder, int depth, std::vector<fs::path>& files) {
  constexpr int kDeepest = 16;  // links may go round
  for (const fs::path& entry : contents_of(folder)) {
    if (!fs::is_directory(entry)) {
      files.push_back(entry);
    } else if (depth < kDeepest) {
      find_pictures(entry, depth + 1, files);
    }
  }
}

}  // namespace

ImageSet read_class_folders(const std::string& path, const ImageForm& form, const std::vector<std::string>& known) {
  std::map<std::string, std::vector<fs::path>> files;
  std::set<std::string> distinct;
  for (const fs::path& entry : contents_of(path)) {
    if (!fs::is_directory(entry))
      fail("'{}' lies beside folders of classes; expected folders alone, or a table of labels in data.target_path",
           entry.string());
    const std::string name = entry.filename().string();
    files[name] = contents_of(entry);
    if (files[name].empty()) fail("the folder '{}' of a class has no images", entry.string());
    distinct.insert(name);
  }
  if (distinct.empty()) fail("the folder '{}' is empty; expected a folder of images for each class", path);
  if (distinct.size() > kMostImageClasses)
    fail("'{}' has {} folders; expected one for each class", path, distinct.size());
  const std::vector<std::string> classes = known.empty() ? sorted_classes(distinct) : known;
  std::vector<NamedImage> images;
  for (const auto& [name, paths] : files) {
    const std::int32_t label = class_of(name, classes, path);
    for (const fs::path& file : paths) images.push_back({file, label});
  }
  mix_classes(images, classes.size());
  return read_named(images, classes, form);
}

ImageSet read_labelled_folder(const std::string& path, const std::string& table, const ImageForm& form,
                              const std::vector<std::string>& known) {
  const std::vector<TableLine> lines = read_label_table(path, table);
  std::set<std::string> distinct;
  for (const TableLine& line : lines) distinct.insert(line.label);
  if (distinct.size() > kMostImageClasses)
    fail("'{}' has {} distinct labels; expected classes", table, distinct.size());
  const std::vector<std::string> classes = known.empty() ? sorted_classes(distinct) : known;
  std::vector<NamedImage> images;
  for (const TableLine& line : lines)
    images.push_back({fs::path(path) / line.file, class_of(line.label, classes, table)});
  mix_classes(images, classes.size());
  return read_named(images, classes, form);
}

ImageSet read_pictures(const std::string& path, const ImageForm& form, std::vector<std::string>& names) {
  std::vector<fs::path> files;
  fs::is_directory(path) ? find_pictures(path, 0, files) : files.push_back(path);
  if (files.empty()) fail("the folder '{}' has no images", path);
  Pictures pictures(form);
  for (const fs::path& file : files) {
    pictures.add(file);
    names.push_back(file.string());
  }
  return pictures.take(std::vector<std::int32_t>(files.size(), 0), {});
}

}  // namespace norma
