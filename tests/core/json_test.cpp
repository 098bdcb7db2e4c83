#include "core/json.h"

#include <gtest/gtest.h>

namespace norma {
namespace {

TEST(Json, IsRead) {
  EXPECT_EQ(parse_json(R"({"a": [1, {"b": "]}\"["}]})")["a"][1]["b"], "]}\"[");
  EXPECT_TRUE(parse_json("{").is_discarded());
  EXPECT_EQ(parse_json<nlohmann::ordered_json>("[1]").at(0), 1);
}

TEST(Json, IsNotNestedWithoutEnd) {
  const auto nested = [](int depth, const std::string& open, const std::string& close) {
    std::string text;
    for (int i = 0; i < depth; ++i) text += open;
    text += "1";
    for (int i = 0; i < depth; ++i) text += close;
    return text;
  };
  EXPECT_TRUE(parse_json(nested(kDeepestJson, "[", "]")).is_array());
  EXPECT_TRUE(parse_json(nested(kDeepestJson + 1, "[", "]")).is_discarded());
  EXPECT_TRUE(parse_json(nested(100000, "{\"a\":", "}")).is_discarded());
  EXPECT_TRUE(parse_json(nested(100000, "[", "")).is_discarded());
  EXPECT_TRUE(parse_json("\"" + nested(200, "[", "]") + "\"").is_string());
}

}  // namespace
}  // namespace norma
