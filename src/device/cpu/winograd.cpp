#include "device/cpu/winograd.h"

#include <algorithm>

#include "device/cpu/winograd_kernels.h"
#include "norma/core/arena.h"

namespace norma {
namespace {

using Pass = ConvolutionShape::Pass;
constexpr std::int64_t kTile = 4, kReach = 6, kPoints = kWinogradPoints, kColumns = kWinogradColumns;

// Sixteen weights at a time, which are neighbours once they are packed.
using Sixteen = float[kColumns];

// G w, of three numbers, and G^T u, of six.
void weight_to_points(const Sixteen& a, const Sixteen& b, const Sixteen& c, Sixteen (&u)[6]) {
  constexpr float kSixth = 1.0f / 6, kTwelfth = 1.0f / 12, kLast = 1.0f / 24;
  for (std::int64_t i = 0; i < kColumns; ++i) {
    const float near = kSixth * (a[i] + c[i]), far = kLast * a[i] + kSixth * c[i];
    u[0][i] = 0.25f * a[i];
    u[1][i] = -near - kSixth * b[i];
    u[2][i] = kSixth * b[i] - near;
    u[3][i] = far + kTwelfth * b[i];
    u[4][i] = far - kTwelfth * b[i];
    u[5][i] = c[i];
  }
}
void points_to_weight(const Sixteen (&u)[6], Sixteen (&w)[3]) {
  constexpr float kSixth = 1.0f / 6, kTwelfth = 1.0f / 12, kLast = 1.0f / 24;
  for (std::int64_t i = 0; i < kColumns; ++i) {
    const float near = kSixth * (u[1][i] + u[2][i]), far = u[3][i] + u[4][i];
    w[0][i] = 0.25f * u[0][i] - near + kLast * far;
    w[1][i] = kSixth * (u[2][i] - u[1][i]) + kTwelfth * (u[3][i] - u[4][i]);
    w[2][i] = kSixth * far - near + u[5][i];
  }
}

// One side of a convolution as rows of tiles: where pixels are, and zeros around them.
struct Side {
  std::int64_t height, width, channels;

  // Pixels of a square of `size` from (top, left) on; `none` outside of the image.
  template <typename T>
  void point(T* image, std::int64_t top, std::int64_t left, std::int64_t size, T* none, T** pixels) const {
    for (std::int64_t row = 0; row < size; ++row) {
      for (std::int64_t column = 0; column < size; ++column) {
        const std::int64_t i = top + row, j = left + column;
        const bool inside = i >= 0 && i < height && j >= 0 && j < width;
        pixels[row * size + column] = inside ? image + (i * width + j) * channels : none;
      }
    }
  }
};

class Winograd final : public Convolution {
 public:
  explicit Winograd(const ConvolutionShape& s) : s_(s) {
    const bool data = s.pass == Pass::data;
    // What is read in tiles of 6 x 6 and what is answered (or differentiated) in tiles of 4 x 4.
    rows_ = data ? s.out : s.in;
    columns_ = data ? s.in : s.out;
    padding_ = data ? 2 - s.padding : s.padding;
    height_ = data ? s.out_height : s.height, width_ = data ? s.out_width : s.width;
    to_height_ = data ? s.height : s.out_height, to_width_ = data ? s.width : s.out_width;
    down_ = (to_height_ + kTile - 1) / kTile;
    across_ = (to_width_ + kTile - 1) / kTile;
    // Both transformed blocks stay in the second cache.
    constexpr std::int64_t kBytes = 384 << 10;
    const std::int64_t fit = kBytes / (kPoints * 4 * (rows_ + columns_));
    block_ = std::clamp<std::int64_t>(fit / kWinogradRows * kWinogradRows, kWinogradRows, 8 * kWinogradRows);
  }

  std::int64_t packed_floats() const override { return kPoints * rows_ * columns_; }
  bool packs_like(const Convolution& other) const override {
    const auto* const one = dynamic_cast<const Winograd*>(&other);
    return one != nullptr && one->rows_ == rows_ && one->columns_ == columns_ && one->s_.pass == s_.pass;
  }
  std::int64_t worker_bytes() const override { return align_up(4 * (of_block() + zeros())); }

  void pack(const float* weight, float* packed, std::byte*) const override {
    for (std::int64_t column = 0; column < columns_; column += kColumns) {
      for (std::int64_t row = 0; row < rows_; ++row) {
        Sixteen taps[9], half[3][6], points[6];
        for (std::int64_t tap = 0; tap < 9; ++tap) read_weights(weight, tap, row, column, taps[tap]);
        for (int i = 0; i < 3; ++i) weight_to_points(taps[i], taps[3 + i], taps[6 + i], half[i]);
        float* const to = packed + (column * rows_ + row * kColumns);
        for (int i = 0; i < 6; ++i) {
          weight_to_points(half[0][i], half[1][i], half[2][i], points);
          for (int j = 0; j < 6; ++j) std::copy_n(points[j], kColumns, to + (i * 6 + j) * rows_ * columns_);
        }
      }
    }
  }

  void unpack(const float* packed, float* weight, std::byte*) const override {
    for (std::int64_t column = 0; column < columns_; column += kColumns) {
      for (std::int64_t row = 0; row < rows_; ++row) {
        const float* const from = packed + (column * rows_ + row * kColumns);
        Sixteen points[6], half[6][3], taps[3];
        for (int j = 0; j < 6; ++j) {
          for (int i = 0; i < 6; ++i) std::copy_n(from + (i * 6 + j) * rows_ * columns_, kColumns, points[i]);
          points_to_weight(points, half[j]);
        }
        for (int i = 0; i < 3; ++i) {
          for (int j = 0; j < 6; ++j) std::copy_n(half[j][i], kColumns, points[j]);
          points_to_weight(points, taps);
          for (int j = 0; j < 3; ++j)
            std::copy_n(taps[j], kColumns, weight + ((i * 3 + j) * s_.in + row) * s_.out + column);
        }
      }
    }
  }

  void run(const float* first, const float* second, float* result, std::byte* worker) const override {
    auto* const x = reinterpret_cast<float*>(worker);
    float* const y = x + kPoints * block_ * rows_;
    float* const none = y + kPoints * block_ * columns_;
    std::fill_n(none, zeros(), 0.0f);
    const bool gathers = s_.pass == Pass::weights;
    if (gathers) std::fill_n(result, packed_floats(), 0.0f);
    const std::int64_t tiles = s_.batch * down_ * across_;
    for (std::int64_t begin = 0; begin < tiles; begin += block_) {
      const std::int64_t count = std::min(block_, tiles - begin);
      const std::int64_t padded = (count + kWinogradRows - 1) / kWinogradRows * kWinogradRows;
      read(first, begin, count, x, none);
      if (gathers) {
        read_answers(second, begin, count, y, none);
        for (std::int64_t point = 0; point < kPoints; ++point)
          winograd_gather(x + point * block_ * rows_, y + point * block_ * columns_, result + point * rows_ * columns_,
                          count, rows_, columns_);
        continue;
      }
      for (std::int64_t point = 0; point < kPoints; ++point) {
        // Tiles that are not there must be numbers, whatever is answered for them.
        std::fill_n(x + (point * block_ + count) * rows_, (padded - count) * rows_, 0.0f);
        winograd_product(x + point * block_ * rows_, second + point * rows_ * columns_, y + point * block_ * columns_,
                         padded, rows_, columns_);
      }
      write(y, begin, count, result);
    }
  }

 private:
  std::int64_t of_block() const { return kPoints * block_ * (rows_ + columns_); }
  std::int64_t zeros() const { return std::max(rows_, columns_); }
  // Of one row and sixteen columns; the gradient of the image takes the kernel from its other end.
  void read_weights(const float* weight, std::int64_t tap, std::int64_t row, std::int64_t column, Sixteen& to) const {
    if (s_.pass != Pass::data) {
      std::copy_n(weight + (tap * s_.in + row) * s_.out + column, kColumns, to);
      return;
    }
    for (std::int64_t i = 0; i < kColumns; ++i) to[i] = weight[((8 - tap) * s_.in + column + i) * s_.out + row];
  }

  struct Place {
    std::int64_t image, top, left;
  };
  Place place_of(std::int64_t tile) const {
    const std::int64_t in_image = tile % (down_ * across_);
    return {tile / (down_ * across_), in_image / across_ * kTile, in_image % across_ * kTile};
  }

  void read(const float* images, std::int64_t begin, std::int64_t count, float* to, const float* none) const {
    const Side side{height_, width_, rows_};
    const float* pixels[kReach * kReach];
    for (std::int64_t tile = 0; tile < count; ++tile) {
      const Place at = place_of(begin + tile);
      side.point(images + at.image * height_ * width_ * rows_, at.top - padding_, at.left - padding_, kReach, none,
                 pixels);
      winograd_transform_image(pixels, rows_, to + tile * rows_, block_ * rows_);
    }
  }

  void read_answers(const float* images, std::int64_t begin, std::int64_t count, float* to, const float* none) const {
    const Side side{to_height_, to_width_, columns_};
    const float* pixels[kTile * kTile];
    for (std::int64_t tile = 0; tile < count; ++tile) {
      const Place at = place_of(begin + tile);
      side.point(images + at.image * to_height_ * to_width_ * columns_, at.top, at.left, kTile, none, pixels);
      winograd_transform_answer(pixels, columns_, to + tile * columns_, block_ * columns_);
    }
  }

  void write(const float* from, std::int64_t begin, std::int64_t count, float* images) const {
    const Side side{to_height_, to_width_, columns_};
    float* pixels[kTile * kTile];
    for (std::int64_t tile = 0; tile < count; ++tile) {
      const Place at = place_of(begin + tile);
      side.point<float>(images + at.image * to_height_ * to_width_ * columns_, at.top, at.left, kTile, nullptr, pixels);
      winograd_answer(from + tile * columns_, block_ * columns_, columns_, pixels);
    }
  }

  ConvolutionShape s_;
  std::int64_t rows_, columns_, padding_, height_, width_, to_height_, to_width_, down_, across_, block_;
};

}  // namespace

bool fits_winograd(const ConvolutionShape& s) {
  constexpr std::int64_t kMostChannels = 256;  // transformed weights are four times as large
  const bool plain = s.kernel_height == 3 && s.kernel_width == 3 && s.stride == 1 && s.dilation == 1 && s.groups == 1 &&
                     s.padding <= 2;
  if (!plain || s.in % kColumns != 0 || s.out % kColumns != 0 || std::max(s.in, s.out) > kMostChannels) return false;
  const bool data = s.pass == Pass::data;
  const std::int64_t height = data ? s.height : s.out_height, width = data ? s.width : s.out_width;
  const auto covered = [](std::int64_t size) { return (size + kTile - 1) / kTile * kTile; };
  return covered(height) * covered(width) * 2 <= height * width * 3;  // or whole tiles are mostly empty
}

std::shared_ptr<const Convolution> make_winograd(const ConvolutionShape& shape) {
  return std::make_shared<Winograd>(shape);
}

}  // namespace norma
