#include "norma/train/data_record.h"

#include <gtest/gtest.h>

#include "error_of.h"

namespace norma {
namespace {

TEST(DataRecord, ComesBackAsItWas) {
  DataRecord record;
  record.files["data.txt"] = {.bytes = 3070, .modified = 17, .hash = "xxh64:51505540ee988b01"};
  record.tokenizer = "xxh64:0123456789abcdef";
  const std::string text = print_data_record(record);
  EXPECT_EQ(print_data_record(parse_data_record(text, "data.json")), text);
}

TEST(DataRecord, EveryFlippedBitIsNoticedOrChangesNothing) {
  DataRecord record;
  record.files["data.txt"] = {.bytes = 3070, .modified = 17, .hash = "xxh64:51505540ee988b01"};
  const std::string text = print_data_record(record);
  int noticed = 0;
  for (std::size_t bit = 0; bit < 8 * text.size(); ++bit) {
    std::string damaged = text;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    std::string back;
    const std::string error =
        test::error_of([&] { back = print_data_record(parse_data_record(damaged, "data.json")); });
    noticed += error.empty() ? 0 : 1;
    if (error.empty()) {
      EXPECT_EQ(back, text) << "bit " << bit;
    } else {
      EXPECT_NE(error.find("data.json"), std::string::npos) << error;
    }
  }
  EXPECT_GT(noticed, static_cast<int>(6 * text.size()));
}

}  // namespace
}  // namespace norma
