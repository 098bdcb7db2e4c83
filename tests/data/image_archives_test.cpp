// Archives of arrays, as NumPy writes them.
#include <gtest/gtest.h>
#include <zlib.h>

#include <set>

#include "data/image_folder.h"

namespace norma {
namespace {

class ImageArchives : public test::ImageFolder {};

std::string number(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

std::string npy_bytes(const std::string& shape, const std::string& values) {
  std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (" + shape + "), }";
  while ((10 + header.size()) % 64 != 63) header += ' ';
  header += '\n';
  return "\x93NUMPY" + std::string{1, 0} + number(header.size(), 2) + header + values;
}

std::string deflated(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string packed(text.size() + 100, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

// As np.savez (method 0) and np.savez_compressed (8) write it.
std::string npz(const std::vector<std::pair<std::string, std::string>>& arrays, int method) {
  std::string archive, directory;
  for (const auto& [name, bytes] : arrays) {
    const std::string data = method == 8 ? deflated(bytes) : bytes, file = name + ".npy";
    const auto checksum = crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size()));
    const std::string common = number(0, 2) + number(static_cast<std::uint64_t>(method), 2) + number(0, 4) +
                               number(checksum, 4) + number(data.size(), 4) + number(bytes.size(), 4) +
                               number(file.size(), 2);
    directory += "PK\x01\x02" + number(20, 2) + number(20, 2) + common + number(0, 2) + number(0, 2) + number(0, 2) +
                 number(0, 2) + number(0, 4) + number(archive.size(), 4) + file;
    archive += "PK\x03\x04" + number(45, 2) + common + number(4, 2) + file + "\x01\x02" + number(0, 2) + data;
  }
  return archive + directory + "PK\x05\x06" + number(0, 4) + number(arrays.size(), 2) + number(arrays.size(), 2) +
         number(directory.size(), 4) + number(archive.size(), 4) + number(0, 2);
}

TEST_F(ImageArchives, ReadsArchivesOfArrays) {
  std::string pixels, labels;
  for (int i = 0; i < 8 * 6; ++i) pixels += static_cast<char>(i);
  for (int i = 0; i < 8; ++i) labels += static_cast<char>(i % 2);
  const std::string images = npy_bytes("8, 2, 3", pixels), targets = npy_bytes("8, 1", labels);
  Batch stored, packed, batch;
  for (const int method : {0, 8}) {
    put("both.npz", npz({{"x", images}, {"y", targets}}, method));
    open_source(config("both.npz"), {.batch = 4, .time = 1})->fill(3, 1, method == 0 ? stored : packed);
  }
  EXPECT_EQ(stored.numbers("image"), packed.numbers("image"));
  EXPECT_EQ(stored.ids("targets"), packed.ids("targets"));
  EXPECT_EQ(std::set<float>(stored.numbers("image").begin(), stored.numbers("image").end()).size(), 24u);

  put("parts.npz", npz({{"x_train", images},
                        {"y_train", targets},
                        {"x_test", npy_bytes("1, 2, 3", "abcdef")},
                        {"y_test", npy_bytes("1,", std::string(1, '\1'))}},
                       8));
  const auto parts = open_source(config("parts.npz"), {.batch = 2, .time = 1});
  EXPECT_EQ(parts->held_out_records(), 1);
  parts->fill_evaluation(0, batch);
  EXPECT_EQ(batch.ids("targets"), (Batch::Ids{1, kIgnored}));
}

TEST_F(ImageArchives, DamagedArchivesAreNamed) {
  const std::string images = npy_bytes("2, 2, 3", "abcdefghijkl"), targets = npy_bytes("2,", std::string{0, 1});
  const std::string whole = npz({{"x", images}, {"y", targets}}, 0);
  const auto expect = [&](const std::string& bytes, const std::string& words) {
    put("bad.npz", bytes);
    expect_said(config("bad.npz"), words);
  };
  expect(whole.substr(0, whole.size() - 5), "is cut or damaged: a zip archive without the directory at its end");
  expect(whole.substr(100), "neither IDX, NPY nor NPZ");
  std::string flipped = whole;
  flipped[whole.find("abcdef")] = 'z';
  expect(flipped, "bad.npz: x.npy' is damaged: its checksum is not what it says");
  expect(npz({{"x", images}, {"y", targets}}, 9), "is packed by method 9 of zip; expected 0 (stored) or 8 (deflated)");
  expect(npz({{"x", images}, {"z", targets}}, 0), "has x.npy, z.npy; expected images and labels under names such as");
  expect(npz({{"x", images}, {"y", npy_bytes("3,", std::string{0, 1, 0})}}, 8), "has 2 images but '");
  expect(npz({{"x", "no array"}, {"y", targets}}, 8), "x.npy' is no NPY array");
  std::string far = whole;
  far.replace(far.size() - 6, 4, number(0xfffff, 4));
  expect(far, "record 0 of its directory is not where it should be");
  std::string huge = npz({{"x", images}, {"y", targets}}, 8);
  const std::size_t record = huge.find("PK\x01\x02");
  huge.replace(record + 24, 4, number(0x7fffffff, 4));
  expect(huge, "bytes cannot unpack to 2147483647");
}

}  // namespace
}  // namespace norma
