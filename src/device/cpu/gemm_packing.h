// B of a product packed into panels, in tiles of its own: the first phase of a kernel whose second one multiplies.
#pragma once

#include "device/cpu/gemm.h"
#include "norma/device/cpu/kernel.h"

namespace norma {

class GemmPacking {
 public:
  // B as `shape` describes it, f32.
  GemmPacking(const GemmShape& shape, const GemmPanels& panels);

  std::int64_t bytes() const { return panels_.elements() * 4; }
  std::int64_t tiles() const { return tiling_.tiles; }
  void run(std::int64_t tile, const float* b, float* packed) const;

 private:
  void pack_piece(const float* b, float* packed, std::int64_t panel, std::int64_t row, std::int64_t rows) const;

  GemmShape shape_;
  GemmPanels panels_;
  std::int64_t pieces_;  // of a panel
  Tiling tiling_;        // over the pieces of all panels
};

}  // namespace norma
