// Images from files: the three formats, what is wrong with a file, statistics of the training part, and variation.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "error_of.h"
#include "norma/core/error.h"
#include "norma/data/source.h"
#include "temporary_folder.h"

namespace norma {
namespace {

using test::error_of;

std::string idx(std::initializer_list<std::uint32_t> shape, const std::string& bytes) {
  std::string text = {0, 0, 8, static_cast<char>(shape.size())};
  for (const std::uint32_t size : shape) {
    for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(size >> shift);
  }
  return text + bytes;
}

template <typename T>
std::string npy(const std::string& type, const std::string& shape, const std::vector<T>& values,
                const char* order = "False") {
  std::string header = "{'descr': '" + type + "', 'fortran_order': " + order + ", 'shape': (" + shape + "), }";
  while ((10 + header.size()) % 64 != 63) header += ' ';
  header += '\n';
  std::string text = "\x93NUMPY";
  text += {1, 0, static_cast<char>(header.size() % 256), static_cast<char>(header.size() / 256)};
  return text + header + std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

class ImageFiles : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& bytes) {
    test::write_file(folder_ / name, bytes);
    return folder_ / name;
  }

  // Ten images of 2 x 3, of two classes.
  DataConfig ten() {
    std::string pixels, labels;
    for (int i = 0; i < 60; ++i) pixels += static_cast<char>(i * 4);
    for (int i = 0; i < 10; ++i) labels += static_cast<char>(i % 2);
    DataConfig config;
    config.task = "images";
    config.path = write("images", idx({10, 2, 3}, pixels));
    config.target_path = write("labels", idx({10}, labels));
    config.validation_fraction = 0.2;
    return config;
  }

  std::string said(const DataConfig& config) {
    return error_of([&] { open_source(config, {.batch = 4, .time = 1}); });
  }

  test::TemporaryFolder folder_;
};

TEST_F(ImageFiles, ReadsIdxAndNormalisesByTheTrainingPartAlone) {
  const auto source = open_source(ten(), {.batch = 4, .time = 1});
  EXPECT_EQ(source->sizes(), (std::map<std::string, std::int64_t>{
                                 {"classes", 2}, {"image_height", 2}, {"image_width", 3}, {"image_channels", 1}}));
  Batch batch;
  std::set<float> seen;
  double sum = 0, squares = 0;
  for (std::uint64_t i = 0; i < 2; ++i) {  // an epoch: eight of ten
    source->fill(i, 1, batch);
    for (const float x : batch.numbers("image")) seen.insert(x), sum += x, squares += static_cast<double>(x) * x;
  }
  EXPECT_EQ(seen.size(), 48u) << "each training pixel once";
  EXPECT_NEAR(sum / 48, 0, 1e-5);
  EXPECT_NEAR(squares / 48, 1, 1e-5);
  ASSERT_EQ(source->evaluation_batches(), 1);
  source->fill_evaluation(0, batch);
  EXPECT_EQ(batch.ids("targets"), (Batch::Ids{0, 1, kIgnored, kIgnored}));
  EXPECT_GT(batch.numbers("image")[0], *seen.rbegin()) << "held out images are brighter, and were not counted";
}

TEST_F(ImageFiles, ReadsNpyOfBytesAndOfNumbers) {
  DataConfig config = ten();
  std::vector<float> numbers;
  for (int i = 0; i < 60; ++i) numbers.push_back(static_cast<float>(i));
  config.path = write("x.npy", npy("<f4", "10, 2, 3, 1", numbers));
  config.target_path = write("y.npy", npy("<i8", "10,", std::vector<std::int64_t>{0, 1, 0, 1, 0, 1, 0, 1, 0, 1}));
  Batch idx_batch, npy_batch;
  open_source(ten(), {.batch = 4, .time = 1})->fill(0, 1, idx_batch);
  open_source(config, {.batch = 4, .time = 1})->fill(0, 1, npy_batch);
  for (std::size_t i = 0; i < 24; ++i)
    EXPECT_NEAR(idx_batch.numbers("image")[i], npy_batch.numbers("image")[i], 1e-5) << "four times as bright";
  config.path = write("f.npy", npy("<f4", "10, 2, 3", numbers, "True"));
  EXPECT_NE(said(config).find("is in Fortran order; expected C order"), std::string::npos);
  config.path = write("c.npy", npy("<c8", "10, 2, 3", numbers));
  EXPECT_NE(said(config).find("of type '<c8'; expected |u1"), std::string::npos);
}

TEST_F(ImageFiles, ReadsCifar) {
  std::string bytes;
  for (int image = 0; image < 4; ++image) {
    bytes += static_cast<char>(image % 2);
    for (int plane = 0; plane < 3; ++plane) bytes += std::string(1024, static_cast<char>(image + 10 * plane));
  }
  DataConfig config;
  config.task = "images";
  config.path = write("batch.bin", bytes);
  config.validation_fraction = 0.25;
  const auto source = open_source(config, {.batch = 3, .time = 1});
  EXPECT_EQ(source->sizes().at("image_channels"), 3);
  Batch batch;
  source->fill(0, 1, batch);
  const Batch::Numbers& image = batch.numbers("image");
  EXPECT_NEAR(image[0], image[1], 1e-6) << "each channel by its own mean";
  bytes[3073] = 11;
  config.path = write("bad.bin", bytes);
  EXPECT_NE(said(config).find("image 1 has the label 11; expected 0 to 9"), std::string::npos);
  config.path = write("short.bin", bytes.substr(0, 5000));
  EXPECT_NE(said(config).find("has 5000 bytes, which is not a whole number of records of 3073"), std::string::npos);
}

TEST_F(ImageFiles, MistakesAreNamed) {
  DataConfig config = ten();
  config.target_path = write("nine", idx({9}, std::string(9, 0)));
  EXPECT_NE(said(config).find("has 10 images but"), std::string::npos);
  config.target_path = write("gap", idx({10}, std::string{0, 0, 0, 0, 0, 3, 3, 1, 1, 0}));
  EXPECT_NE(said(config).find("has no image of class 2 to train on, but of classes up to 3"), std::string::npos);
  config.target_path = write("late", idx({10}, std::string{0, 1, 0, 1, 0, 1, 0, 1, 0, 2}));
  EXPECT_NE(said(config).find("has a label 2, but the images to train on have 0 to 1"), std::string::npos);
  config.target_path.clear();
  EXPECT_NE(said(config).find("holds images alone; expected their labels in data.target_path"), std::string::npos);
  config = ten();
  config.path = write("cut", idx({10, 2, 3}, std::string(59, 1)));
  EXPECT_NE(said(config).find("has 75 bytes; its header says 16 and then 60"), std::string::npos);
  config.path = write("huge", idx({0xffffffff, 0xffffffff, 3}, ""));
  EXPECT_NE(said(config).find("expected sizes of at least 1"), std::string::npos);
  config.path = write("packed", std::string("\x1f\x8b", 2) + "abc");
  EXPECT_NE(said(config).find("gzip data"), std::string::npos);
  config = ten();
  config.validation_path = write("other", idx({2, 3, 3}, std::string(18, 1)));
  config.validation_target_path = write("other labels", idx({2}, std::string{0, 1}));
  EXPECT_NE(said(config).find("has images of 2 x 3 x 1 to train on but"), std::string::npos);
  config = ten();
  config.settings["crops"] = 1;
  EXPECT_NE(said(config).find("has no such setting (did you mean 'crop'?)"), std::string::npos);
  config = ten();
  config.path = write("flat", idx({10}, std::string(10, 1)));
  EXPECT_NE(said(config).find("expected [images, height, width]"), std::string::npos);
}

TEST_F(ImageFiles, WhatLeavesNothingOfAnImageIsRefused) {
  for (const char* name : {"crop", "cutout"}) {
    DataConfig config = ten();
    config.settings[name] = 2;
    EXPECT_NE(said(config).find("is 2, but the images are 2 x 3 (height x width); expected at most 1"),
              std::string::npos);
  }
}

TEST_F(ImageFiles, LabelsThatAreNoClassesAreNamed) {
  DataConfig config = ten();
  for (const auto& [label, named] : {std::pair{-1.0, "-1"}, {1.5, "1.5"}, {1e20, "1e+20"}}) {
    std::vector<double> labels(10, 0);
    labels[3] = label;
    config.target_path = write("labels.npy", npy("<f8", "10,", labels));
    EXPECT_NE(said(config).find(std::string("label 3 is ") + named + "; expected a whole number from 0 to 99999"),
              std::string::npos)
        << said(config);
  }
}

TEST_F(ImageFiles, NumbersThatAreNotFiniteAreRefusedInBothParts) {
  for (const int image : {1, 9}) {  // to train on; held out
    std::vector<float> pixels(60, 0.5f);
    pixels[0] = 1;
    pixels[static_cast<std::size_t>(6 * image + 2)] = std::nanf("");
    DataConfig config = ten();
    config.path = write("images.npy", npy("<f4", "10, 2, 3", pixels));
    EXPECT_NE(said(config).find("image " + std::to_string(image) + " holds nan; expected finite"), std::string::npos);
  }
}

// Of an image that differs where all that are trained on are alike.
TEST_F(ImageFiles, WhatRoundingLeavesOfAConstantIsNotBlownUp) {
  DataConfig config = ten();
  std::vector<float> pixels(8000, 0.3f);
  std::fill(pixels.end() - 1600, pixels.end(), 0.5f);
  config.path = write("images.npy", npy("<f4", "10, 20, 40", pixels));
  Batch batch;
  const auto source = open_source(config, {.batch = 2, .time = 1});
  source->fill(0, 1, batch);
  for (const float value : batch.numbers("image")) EXPECT_EQ(value, 0);
  source->fill_evaluation(0, batch);
  for (const float value : batch.numbers("image")) EXPECT_NEAR(value, 0.2f, 1e-6f);
}

// A function of seed, batch and row alone; of the held-out part nothing is varied.
TEST_F(ImageFiles, VariationSurvivesResuming) {
  DataConfig config = ten();
  const auto plain = open_source(config, {.batch = 4, .time = 1});
  config.settings = {{"crop", 1}, {"flip", 1}, {"cutout", 1}};
  const auto first = open_source(config, {.batch = 4, .time = 1}),
             second = open_source(config, {.batch = 4, .time = 1});
  Batch a, b, still;
  bool moved = false;
  for (std::uint64_t index = 0; index < 6; ++index) first->fill(index, 3, a);
  second->fill(5, 3, b);
  EXPECT_EQ(a.numbers("image"), b.numbers("image"));
  plain->fill(5, 3, still);
  moved = still.numbers("image") != a.numbers("image");
  EXPECT_TRUE(moved);
  EXPECT_EQ(still.ids("targets"), a.ids("targets"));
  first->fill(5, 4, b);
  EXPECT_NE(a.numbers("image"), b.numbers("image"));
  first->fill_evaluation(0, a);
  plain->fill_evaluation(0, b);
  EXPECT_EQ(a.numbers("image"), b.numbers("image"));
}

// A study tunes on one half of what is held out and compares on the other: both are of the same data.
TEST(HeldOutParts, KnowWhatTheWholeKnows) {
  for (const char* task : {"shapes", "parity", "block_model"}) {
    DataConfig config;
    config.task = task;
    const auto whole = open_source(config, {.batch = 4, .time = 1});
    config.held_out = "odd";
    const auto part = open_source(config, {.batch = 4, .time = 1});
    EXPECT_EQ(part->sizes(), whole->sizes()) << task;
    EXPECT_FALSE(whole->sizes().empty()) << task;
    EXPECT_EQ(part->best_accuracy(), whole->best_accuracy()) << task;
    EXPECT_EQ(part->optimum(), whole->optimum()) << task;
  }
}

}  // namespace
}  // namespace norma
