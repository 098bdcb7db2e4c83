// Configurations that cannot be.
#include "norma/models/model.h"

#include "check.h"

namespace norma {
namespace {

ModelConfig tiny(const std::string& scheme, DType dtype = DType::f32) {
  return {
      .layers = 3, .width = 24, .heads = 3, .vocabulary = 17, .batch = 4, .time = 9, .scheme = scheme, .dtype = dtype};
}

TEST(Decoder, BadConfigurationsAreNamed) {
  Graph g;
  ModelConfig config = tiny("pre");
  config.layers = 0;
  EXPECT_EQ(test::error_of([&] { build_model(g, config); }), "a stack needs at least one layer, but 0 were asked for");
  Graph h;
  config = tiny("pre");
  config.heads = 7;
  EXPECT_NE(test::error_of([&] { build_model(h, config); }).find("width 24 is not divisible by 7 heads"),
            std::string::npos);
}

}  // namespace
}  // namespace norma
