// Folders of PNG and JPEG files, images brought to one size, and how a run keeps what it has read.
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>

#include "data/image_folder.h"
#include "data/images/image_set.h"
#include "data/images/resize.h"
#include "norma/data/source.h"
#include "norma/data/vocabulary.h"

namespace norma {
namespace {

namespace fs = std::filesystem;
using test::jpeg_of;
using test::plain;
using test::png_of;

class ImageFolders : public test::ImageFolder {};

TEST_F(ImageFolders, AFolderForEachClassNamesTheClasses) {
  const auto source = open_source(animals(), {.batch = 3, .time = 1});
  EXPECT_EQ(source->labels(), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(source->sizes(), (std::map<std::string, std::int64_t>{
                                 {"classes", 2}, {"image_height", 4}, {"image_width", 6}, {"image_channels", 1}}));
  EXPECT_EQ(source->held_out_records(), 3);
  Batch batch;
  source->fill_evaluation(0, batch);
  Batch::Ids held = batch.ids("targets");
  std::sort(held.begin(), held.end());
  EXPECT_EQ(held, (Batch::Ids{0, 0, 1})) << "the last share of every class";
  for (std::size_t row = 0; row < 3; ++row)
    EXPECT_EQ(batch.numbers("image")[row * 24] > 0, batch.ids("targets")[row] == 0) << "cats are bright";
}

TEST_F(ImageFolders, ASecondFolderIsHeldOutAndItsClassesAreFoundByName) {
  DataConfig given = animals();
  put("test/dog/1.png", png_of(4, 6, 1, plain(4, 6, 1, 50)));
  given.validation_path = folder_ / "test";
  Batch batch;
  const auto source = open_source(given, {.batch = 2, .time = 1});
  source->fill_evaluation(0, batch);
  EXPECT_EQ(batch.ids("targets"), (Batch::Ids{1, kIgnored}));
  put("test/dogs/1.png", png_of(4, 6, 1, plain(4, 6, 1, 50)));
  expect_said(given, "has the class 'dogs', which no image to train on has (did you mean 'dog'?); known are cat, dog");
}

TEST_F(ImageFolders, SizesMustBeAlikeOrAreMadeSo) {
  DataConfig given = animals();
  put("animals/cat/99.png", png_of(5, 6, 1, plain(5, 6, 1, 7)));
  expect_said(given, "cat/99.png' is 5 x 6 but '");
  expect_said(given, "' 4 x 6 (height x width); expected one size, or data.settings.resize");
  given.settings["resize"] = 3;
  EXPECT_EQ(open_source(given, {.batch = 3, .time = 1})->sizes().at("image_width"), 3);
}

TEST_F(ImageFolders, GreyAndColoursMustNotBeMixedOrAreMadeAlike) {
  DataConfig given = animals();
  put("animals/cat/99.png", png_of(4, 6, 3, plain(4, 6, 3, 7)));
  expect_said(given, "cat/99.png' is coloured but '");
  expect_said(given, "is grey; expected one of both, or data.settings.channels (1 or 3)");
  for (const int channels : {1, 3}) {
    given.settings["channels"] = channels;
    EXPECT_EQ(open_source(given, {.batch = 3, .time = 1})->sizes().at("image_channels"), channels);
  }
  given.settings["channels"] = 2;
  expect_said(given, "data.settings.channels is 2; expected 1 (grey), 3 (colours)");
}

TEST_F(ImageFolders, PixelsAreWhatTheFilesSay) {
  std::vector<unsigned char> ramp(2 * 3 * 3);
  std::iota(ramp.begin(), ramp.end(), static_cast<unsigned char>(10));
  put("one/ramp.png", png_of(2, 3, 3, ramp));
  std::vector<std::string> names;
  const ImageSet set = read_unlabelled(folder_ / "one", {}, names);
  EXPECT_EQ(std::get<0>(set.pixels), ramp);
  EXPECT_TRUE(names.at(0).ends_with("one/ramp.png"));
  names.clear();
  // 0.299 * 10 + 0.587 * 11 + 0.114 * 12, rounded.
  const ImageSet grey = read_unlabelled(folder_ / "one/ramp.png", {.channels = 1}, names);
  EXPECT_EQ(std::get<0>(grey.pixels)[0], 11);
  std::vector<unsigned char> half = {200, 100, 50, 0};  // transparent: black shows
  put("one/clear.png", png_of(1, 1, 4, half));
  names.clear();
  EXPECT_EQ(std::get<0>(read_unlabelled(folder_ / "one/clear.png", {}, names).pixels),
            (std::vector<unsigned char>{0, 0, 0}));
  put("one/plain.jpg", jpeg_of(9, 11, 3, plain(9, 11, 3, 77)));
  names.clear();
  const ImageSet photo = read_unlabelled(folder_ / "one/plain.jpg", {}, names);
  for (const unsigned char pixel : std::get<0>(photo.pixels)) EXPECT_NEAR(pixel, 77, 2);
}

TEST_F(ImageFolders, DamagedFilesAreNamed) {
  DataConfig given = animals();
  const std::string png = png_of(4, 6, 1, plain(4, 6, 1, 9)),
                    jpeg = jpeg_of(64, 64, 1, [] {
                      std::vector<unsigned char> noise;
                      for (int i = 0; i < 64 * 64; ++i) noise.push_back(static_cast<unsigned char>(i * i % 251));
                      return noise;
                    }());
  for (const auto& [bytes, words] :
       {std::pair<std::string, std::string>{png.substr(0, png.size() - 20), "is damaged or cut: "},
        {png.substr(0, 20), "no PNG that can be read"},
        {jpeg.substr(0, jpeg.size() / 2), "is damaged or cut: "},
        {jpeg.substr(0, 10), "is damaged or cut: "},
        {"GIF89a", "is neither PNG nor JPEG"}}) {
    put("animals/cat/bad", bytes);
    expect_said(given, "cat/bad'");
    expect_said(given, words);
  }
  std::string wrong = png;
  const std::size_t inside = wrong.find("IDAT") + 8;
  wrong[inside] = static_cast<char>(wrong[inside] ^ 0x55);
  put("animals/cat/bad", wrong);
  expect_said(given, "cat/bad' is damaged or cut: ");
  put("animals/cat/bad", "");
  expect_said(given, "cat/bad'");
}

TEST_F(ImageFolders, FoldersThatAreNoClassesAreNamed) {
  DataConfig given = animals();
  fs::create_directories(folder_.path() / "animals/empty");
  expect_said(given, "animals/empty' of a class has no images");
  fs::remove(folder_.path() / "animals/empty");
  put("animals/readme.txt", "x");
  expect_said(given, "readme.txt' lies beside folders of classes");
  fs::create_directories(folder_.path() / "nothing");
  expect_said(config("nothing"), "is empty; expected a folder of images for each class");
  put("alone/cat/1.png", png_of(1, 1, 1, {1}));
  put("alone/cat/2.png", png_of(1, 1, 1, {1}));
  expect_said(config("alone"), "has images of one class only; expected at least two");
  for (const char* name : {"rare/cat/1.png", "rare/dog/1.png"}) put(name, png_of(1, 1, 1, {1}));
  expect_said(config("rare"),
              "has too few images of class dog: all of them are held out, and none is left to train on");
  put("few/cat/1.png", png_of(1, 1, 1, {1}));
  expect_said(config("few"), "gives 0 images to train on and 1 held out");
  put("one.png", png_of(1, 1, 1, {1}));
  expect_said(config("one.png"), "is one picture; expected a folder of them");
}

TEST_F(ImageFolders, ATableLabelsAFolder) {
  for (int i = 0; i < 4; ++i) put("flat/" + std::to_string(i) + ".png", png_of(2, 2, 1, plain(2, 2, 1, 60 * i)));
  DataConfig given = config("flat");
  put("labels.csv", "file,label\n0.png,night\n1.png,night\n2.png,day\n3.png,day\n");
  given.target_path = folder_ / "labels.csv";
  given.validation_path = given.path;
  put("held.tsv", "2.png\tday\n");
  given.validation_target_path = folder_ / "held.tsv";
  const auto source = open_source(given, {.batch = 2, .time = 1});
  EXPECT_EQ(source->labels(), (std::vector<std::string>{"day", "night"}));
  Batch batch;
  source->fill_evaluation(0, batch);
  EXPECT_EQ(batch.ids("targets"), (Batch::Ids{0, kIgnored}));
  put("labels.csv", "0.png,night\n7.png,day\n");
  expect_said(given, "labels.csv', line 2: there is no '7.png' in ");
  put("labels.csv", "0.png,night\n1.png,\n");
  expect_said(given, "line 2: '1.png' has no label");
  put("labels.csv", "0.png\n");
  expect_said(given, "line 1: '0.png' has no tab and no comma");
  put("labels.csv", "a,b\n");
  expect_said(given, "names no image of ");
}

// A square from the middle; a triangle as wide as a new pixel.
TEST_F(ImageFolders, ResizingAveragesAndInterpolates) {
  const std::vector<float> ramp = {0, 1, 2, 3, 4, 5, 6, 7};  // [1, 8]: the middle pixel of one row
  EXPECT_EQ(resized(ramp.data(), 1, 8, 1, 1), std::vector<float>{3});
  std::vector<float> square;
  for (int i = 0; i < 64; ++i) square.push_back(static_cast<float>(i % 8));
  const std::vector<float> half = resized(square.data(), 8, 8, 1, 4), twice = resized(square.data(), 8, 8, 1, 16);
  EXPECT_NEAR(half[1], 2.5, 1e-6) << "a straight line stays one";
  EXPECT_NEAR(half[2], 4.5, 1e-6);
  EXPECT_NEAR(half[0], 5.0 / 7, 1e-6) << "at the edge what lies beyond does not count: (3*0 + 3*1 + 1*2) / 7";
  EXPECT_NEAR(twice[5], 2.25, 1e-6);
  for (const std::int64_t side : {1, 3, 7, 13}) {
    const std::vector<unsigned char> same = test::plain(5, 9, 3, 255);
    EXPECT_EQ(resized(same.data(), 5, 9, 3, side), test::plain(static_cast<int>(side), static_cast<int>(side), 3, 255));
  }
}

TEST_F(ImageFolders, ARunKeepsHowItReadsImages) {
  DataConfig given = animals();
  given.settings["resize"] = 3;
  const auto source = open_source(given, {.batch = 2, .time = 1});
  const auto kept = parse_vocabulary(print_vocabulary(given, *source), "vocabulary.json");
  EXPECT_EQ(kept->labels(), source->labels());
  ASSERT_NE(kept->images(), nullptr);
  EXPECT_EQ(kept->images()->mean, source->images()->mean);
  EXPECT_EQ(kept->images()->scale, source->images()->scale);
  const NamedImages one = read_images_as(*kept->images(), folder_ / "animals/dog/0.png");
  ASSERT_EQ(one.numbers.size(), 9u) << "a square of 3";
  EXPECT_LT(one.numbers[0], 0);
  EXPECT_NE(error_of([&] {
              read_images_as(*open_source(animals(), {.batch = 2, .time = 1})->images(), [&] {
                put("odd.png", png_of(2, 2, 1, plain(2, 2, 1, 1)));
                return folder_ / "odd.png";
              }());
            }).find("has images of 2 x 2 x 1; the model was trained on 4 x 6 x 1"),
            std::string::npos);
  EXPECT_NE(
      error_of([] { parse_vocabulary(R"({"labels": [], "images": {"height": 3}})", "v.json"); }).find("'v.json' is"),
      std::string::npos);
}

TEST(SharedImages, MnistIsReadPacked) {
  DataConfig config;
  config.task = "images";
  config.path = shared_data("mnist/t10k-images-idx3-ubyte.gz");
  config.target_path = shared_data("mnist/t10k-labels-idx1-ubyte.gz");
  if (config.path.empty()) GTEST_SKIP() << "no shared data";
  const auto source = open_source(config, {.batch = 4, .time = 1});
  EXPECT_EQ(source->classes(), 10);
  EXPECT_EQ(source->sizes().at("image_height"), 28);
  EXPECT_EQ(source->held_out_records(), 1000);
  config.path = shared_data("cifar10/test_batch_2000.bin.zst");
  config.target_path = "";
  EXPECT_NE(error_of([&] { open_source(config, {.batch = 4, .time = 1}); }).find("unzstd FILE unpacks it"),
            std::string::npos);
}

}  // namespace
}  // namespace norma
