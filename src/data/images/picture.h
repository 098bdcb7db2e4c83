// One picture from the bytes of a PNG or JPEG file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace norma {

struct Picture {
  std::int64_t height = 0, width = 0, channels = 0;  // 1 grey, 3 red, green and blue
  std::vector<std::uint8_t> pixels = {};             // [height, width, channels]
};

bool is_picture(std::string_view bytes);

// Of 8 bits a channel, whatever the file has; what is transparent shows black behind. Throws Error, naming `path`, for
// a file that is damaged, cut or too large.
Picture read_picture(std::string_view bytes, const std::string& path);

// 1: grey from colours by their brightness (0.299, 0.587, 0.114); 3: three equal channels of a grey one; 0: as it is.
Picture with_channels(Picture picture, std::int64_t channels);

}  // namespace norma
