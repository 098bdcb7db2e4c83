// What the blocks of a residual network of convolutions read and answer: stages of blocks, each stage but the first
// begins with one that halves the image and changes its channels.
#pragma once

#include <cstdint>
#include <vector>

namespace norma {

struct ModelConfig;

struct ImageLayer {
  std::int64_t height = 0, width = 0, in = 0;  // of the image that it reads
  std::int64_t out = 0;                        // channels that it answers
  std::int64_t inner = 0;                      // channels between its convolutions
  std::int64_t stride = 1;

  std::int64_t out_height() const { return (height + stride - 1) / stride; }
  std::int64_t out_width() const { return (width + stride - 1) / stride; }
  bool changes_shape() const { return stride > 1 || in != out; }
};

struct ImageLayout {
  std::int64_t stem = 3;       // size of the first kernel
  bool deep_stem = false;      // instead of one of 7 x 7, three of 3 x 3
  bool inverted = false;       // blocks that are widest in the middle
  std::int64_t kernel = 3;     // size of the largest kernel of a block
  std::int64_t expansion = 1;  // above 1: bottlenecks, answers so many times wider than their 3 x 3 convolution
  std::vector<ImageLayer> layers;

  bool patches() const { return stem == 2 || stem == 4; }  // the stem cuts the image into patches
  bool pooled() const { return stem == 7; }                // the stem halves the image twice
  std::int64_t positions() const { return layers.back().out_height() * layers.back().out_width(); }
  std::int64_t channels() const { return layers.back().out; }
  std::vector<std::int64_t> since() const;  // StackSites::since
};

// Throws Error for what does not fit.
ImageLayout image_layout(const ModelConfig& config);

}  // namespace norma
