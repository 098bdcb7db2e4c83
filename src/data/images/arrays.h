// Numbers of a file as they are stored: IDX (MNIST and alike) and NPY.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace norma {

inline constexpr std::int64_t kMostPixels = std::int64_t{1}
                                            << 32;  // of a file; keeps a damaged header from filling memory

struct StoredArray {
  std::vector<std::int64_t> shape;  // 1 to 4 axes
  std::variant<std::vector<std::uint8_t>, std::vector<float>> values;
};

bool is_idx(std::string_view bytes);
bool is_npy(std::string_view bytes);

// Throw Error, naming `path`, for a header or a size that is not what the format says.
StoredArray read_idx(std::string_view bytes, const std::string& path);
StoredArray read_npy(std::string_view bytes, const std::string& path);

}  // namespace norma
