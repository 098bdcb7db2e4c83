// A folder of small images, and what opening it says.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>

#include "data/files.h"
#include "data/pictures.h"
#include "norma/data/source.h"

namespace norma::test {

namespace fs = std::filesystem;

// Eight cats, bright, and four dogs, dark.
class ImageFolder : public testing::Test {
 protected:
  void put(const std::string& name, const std::string& bytes) {
    fs::create_directories((folder_.path() / name).parent_path());
    test::write_file(folder_.path() / name, bytes);
  }

  // Eight cats, bright, and four dogs, dark, of 4 x 6; PNG and JPEG in turns.
  DataConfig animals() {
    for (int i = 0; i < 12; ++i) {
      const bool cat = i < 8;
      const std::string name = (cat ? "animals/cat/" : "animals/dog/") + std::to_string(i % 8);
      const std::vector<unsigned char> pixels = plain(4, 6, 1, cat ? 200 + i : 40 + i);
      put(name + (i % 2 == 0 ? ".png" : ".jpg"), i % 2 == 0 ? png_of(4, 6, 1, pixels) : jpeg_of(4, 6, 1, pixels));
    }
    put("animals/.hidden", "not an image");
    return config("animals");
  }

  DataConfig config(const std::string& name) {
    DataConfig config;
    config.task = "images";
    config.path = folder_ / name;
    config.validation_fraction = 0.25;
    return config;
  }

  std::string said(const DataConfig& config) {
    return error_of([&] { open_source(config, {.batch = 3, .time = 1}); });
  }
  void expect_said(const DataConfig& config, const std::string& words) {
    EXPECT_NE(said(config).find(words), std::string::npos) << said(config);
  }

  TemporaryFolder folder_;
};

}  // namespace norma::test
