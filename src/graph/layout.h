// Places buffers with known lifetimes in one address range so that live ones never overlap.
#pragma once

#include <cstdint>
#include <vector>

namespace norma {

struct Buffer {
  std::int64_t bytes = 0;  // aligned
  int first = 0;           // step that writes it first
  int last = 0;            // last step that touches it
  std::int64_t offset = -1;
  std::int64_t needed = 0;  // without alignment and spacing
};

struct LayoutResult {
  std::int64_t bytes = 0;
  std::int64_t peak_live_bytes = 0;  // of what is needed: lower bound for any layout
};

LayoutResult lay_out(std::vector<Buffer>& buffers, int steps);

}  // namespace norma
