// Any bytes are either images or an Error: PNG, JPEG, IDX, NPY, NPZ, CIFAR, each as the bytes themselves say, as they
// are and brought to another size.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "data/images/image_set.h"
#include "data/images/picture.h"
#include "norma/core/error.h"

namespace {

// Readers take files; one place in memory, written again and again.
const std::string& file() {
  static const std::string path = [] {
    const char* const room = std::filesystem::is_directory("/dev/shm") ? "/dev/shm" : "/tmp";
    return std::string(room) + "/norma-image-fuzzer-" + std::to_string(::getpid());
  }();
  return path;
}

template <typename Read>
void expect_images_or_error(Read read) {
  try {
    const norma::ImageSet set = read();
    const std::size_t pixels =
        set.pixels.index() == 0 ? std::get<0>(set.pixels).size() : std::get<1>(set.pixels).size();
    if (pixels != static_cast<std::size_t>(set.count() * set.elements())) std::abort();
  } catch (const norma::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::ofstream(file(), std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  for (const std::int64_t side : {0, 3}) {
    expect_images_or_error([&] { return norma::read_images(file(), "", {.side = side}); });
    expect_images_or_error([&] { return norma::read_images(file(), file(), {.side = side}); });
    expect_images_or_error([&] {
      std::vector<std::string> names;
      return norma::read_unlabelled(file(), {.side = side, .channels = side == 0 ? 0 : 1}, names);
    });
  }
  return 0;
}
