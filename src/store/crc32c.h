// CRC-32C (Castagnoli), as TFRecord files carry it.
#pragma once

#include <cstdint>
#include <string_view>

namespace norma {

std::uint32_t crc32c(std::string_view bytes);

}  // namespace norma
