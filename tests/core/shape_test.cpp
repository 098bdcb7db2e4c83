// Shapes, dtypes and types: what they say, and how they refuse.
#include "norma/core/shape.h"

#include <gtest/gtest.h>

#include "check.h"
#include "norma/core/dtype.h"

namespace norma {
namespace {

using test::error_of;

TEST(Shape, RowsAndChannels) {
  const Shape shape{2, 3, 5};
  EXPECT_EQ(shape.rank(), 3);
  EXPECT_EQ(shape.elements(), 30);
  EXPECT_EQ(shape.channels(), 5);
  EXPECT_EQ(shape.rows(), 6);
  EXPECT_EQ(shape[0], 2);
  EXPECT_EQ(shape[-1], 5);
  EXPECT_EQ(shape.str(), "[2, 3, 5]");
  EXPECT_EQ(shape.with(-1, 1), (Shape{2, 3, 1}));
  EXPECT_NE(shape, (Shape{2, 3, 5, 1}));
}

TEST(Shape, RankZeroIsOneElement) {
  EXPECT_EQ(Shape().elements(), 1);
  EXPECT_EQ(Shape().rows(), 1);
  EXPECT_EQ(Shape().channels(), 1);
  EXPECT_EQ(Shape().str(), "[]");
}

TEST(Shape, RefusesBadDimensions) {
  EXPECT_EQ(error_of([] { Shape{4, 0}; }), "shape [4, 0]: every dimension must be at least 1");
  EXPECT_EQ(error_of([] { Shape{-3}; }), "shape [-3]: every dimension must be at least 1");
  EXPECT_EQ(error_of([] { Shape{1, 1, 1, 1, 1, 1}; }),
            "shape [1, 1, 1, 1, 1, 1] has 6 dimensions; at most 5 are supported");
  const std::int64_t large = std::int64_t{1} << 40;
  EXPECT_NE(error_of([&] { Shape{large, large}; }).find("too many elements"), std::string::npos);
  EXPECT_NE(error_of([&] { (Shape{4, large}).with(0, large); }).find("too many elements"), std::string::npos);
}

TEST(Shape, AnAxisOutsideIsAProgrammingError) {
  EXPECT_THROW((Shape{2, 3})[2], InternalError);
  EXPECT_THROW((Shape{2, 3})[-3], InternalError);
  EXPECT_THROW(Shape()[0], InternalError);
}

TEST(DType, NamesAndSizes) {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i32}) {
    EXPECT_EQ(parse_dtype(name_of(dtype)), dtype);
  }
  EXPECT_EQ(size_of(DType::f32), 4u);
  EXPECT_EQ(size_of(DType::f64), 8u);
  EXPECT_EQ(size_of(DType::bf16), 2u);
  EXPECT_EQ(size_of(DType::i32), 4u);
  EXPECT_FALSE(is_floating(DType::i32));
  EXPECT_TRUE(is_floating(DType::bf16));
  EXPECT_EQ(epsilon_of(DType::bf16), 0.0078125);
}

TEST(DType, RefusesUnknownNames) {
  EXPECT_EQ(error_of([] { parse_dtype("f16"); }),
            "unknown dtype 'f16' (did you mean 'bf16'?); expected f32, f64, bf16 or i32");
  EXPECT_EQ(error_of([] { parse_dtype("quaternion"); }), "unknown dtype 'quaternion'; expected f32, f64, bf16 or i32");
}

TEST(Type, BytesAndText) {
  const Type type{{32, 128}, DType::bf16};
  EXPECT_EQ(type.bytes(), 32 * 128 * 2);
  EXPECT_EQ(type.str(), "bf16[32, 128]");
}

}  // namespace
}  // namespace norma
