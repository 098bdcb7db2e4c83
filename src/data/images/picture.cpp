#include "data/images/picture.h"

// jpeglib.h needs FILE and size_t from before it.
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include <jpeglib.h>
// Behind it.
#include <jerror.h>
#include <png.h>

#include "norma/core/error.h"

namespace norma {
namespace {

constexpr std::int64_t kMostPicture = std::int64_t{1} << 26;  // pixels of one; a damaged header must not fill memory

bool is_png(std::string_view bytes) { return bytes.starts_with("\x89PNG\r\n\x1a\n"); }
bool is_jpeg(std::string_view bytes) { return bytes.starts_with("\xff\xd8\xff"); }

void check_extent(std::int64_t height, std::int64_t width, const std::string& path) {
  if (height < 1 || width < 1 || height > kMostPicture / width)
    fail("'{}' says that it has {} x {} pixels; expected at most {}", path, height, width, kMostPicture);
}

// A warning of libpng about a chunk that pixels do not need, such as a colour profile, whose name begins with a small
// letter: "iCCP: known incorrect sRGB profile".
bool is_beside_pixels(std::string_view said) {
  return said.size() > 4 && said[4] == ':' && said[0] >= 'a' && said[0] <= 'z';
}

Picture read_png(std::string_view bytes, const std::string& path) {
  png_image image;
  std::memset(&image, 0, sizeof image);
  image.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()) == 0)
    fail("'{}' is no PNG that can be read: {}", path, static_cast<const char*>(image.message));
  const bool colour = (image.format & PNG_FORMAT_FLAG_COLOR) != 0;
  image.format = colour ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;  // 16 bits are as 8 bits are, only finer
  Picture picture{.height = image.height, .width = image.width, .channels = colour ? 3 : 1};
  const bool fits = picture.height >= 1 && picture.width >= 1 && picture.height <= kMostPicture / picture.width;
  if (!fits) png_image_free(&image);
  check_extent(picture.height, picture.width, path);
  picture.pixels.resize(static_cast<std::size_t>(picture.height * picture.width * picture.channels));
  const png_color black{};
  const bool whole = png_image_finish_read(&image, &black, picture.pixels.data(), 0, nullptr) != 0;
  if (!whole || image.warning_or_error != 0) {
    const std::string said = static_cast<const char*>(image.message);
    png_image_free(&image);
    if (!whole || !is_beside_pixels(said)) fail("'{}' is damaged or cut: {}", path, said);
  }
  return picture;
}

// libjpeg reports a mistake by a function that must not return.
struct JpegErrors {
  jpeg_error_mgr base;
  std::jmp_buf back;
  char said[JMSG_LENGTH_MAX];
};

void leave_jpeg(j_common_ptr info) {
  auto* const errors = reinterpret_cast<JpegErrors*>(info->err);
  errors->base.format_message(info, errors->said);
  std::longjmp(errors->back, 1);
}

// A cut file is a warning to libjpeg, which makes up what is missing; not here. Bytes between two parts, which cameras
// leave, harm nothing.
void hear_jpeg(j_common_ptr info, int level) {
  if (level < 0 && info->err->msg_code != JWRN_EXTRANEOUS_DATA) leave_jpeg(info);
}

// No object with a destructor lives here: longjmp would pass it over. False: `errors` say why.
bool read_jpeg_header(jpeg_decompress_struct& info, JpegErrors& errors, std::string_view bytes) {
  if (setjmp(errors.back) != 0) return false;
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&info, TRUE);
  info.out_color_space = info.num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
  info.dct_method = JDCT_ISLOW;  // the same bits with every instruction set
  return true;
}

bool read_jpeg_rows(jpeg_decompress_struct& info, JpegErrors& errors, std::uint8_t* to) {
  if (setjmp(errors.back) != 0) return false;
  jpeg_start_decompress(&info);
  const std::size_t stride = std::size_t{info.output_width} * static_cast<std::size_t>(info.output_components);
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = to + info.output_scanline * stride;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  return true;
}

Picture read_jpeg(std::string_view bytes, const std::string& path) {
  jpeg_decompress_struct info{};
  JpegErrors errors{};
  info.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = leave_jpeg;
  errors.base.emit_message = hear_jpeg;
  const struct Guard {
    jpeg_decompress_struct& info;
    ~Guard() { jpeg_destroy_decompress(&info); }
  } guard{info};
  const auto damaged = [&] { fail("'{}' is damaged or cut: {}", path, static_cast<const char*>(errors.said)); };
  if (!read_jpeg_header(info, errors, bytes)) damaged();
  if (info.num_components != 1 && info.num_components != 3)
    fail("'{}' is a JPEG of {} channels; expected grey or colours", path, info.num_components);
  Picture picture{.height = info.image_height, .width = info.image_width, .channels = info.num_components == 1 ? 1 : 3};
  check_extent(picture.height, picture.width, path);
  picture.pixels.resize(static_cast<std::size_t>(picture.height * picture.width * picture.channels));
  if (!read_jpeg_rows(info, errors, picture.pixels.data())) damaged();
  return picture;
}

}  // namespace

bool is_picture(std::string_view bytes) { return is_png(bytes) || is_jpeg(bytes); }

Picture read_picture(std::string_view bytes, const std::string& path) {
  if (is_png(bytes)) return read_png(bytes, path);
  if (is_jpeg(bytes)) return read_jpeg(bytes, path);
  fail("'{}' is neither PNG nor JPEG", path);
}

Picture with_channels(Picture picture, std::int64_t channels) {
  if (channels == 0 || channels == picture.channels) return picture;
  Picture other{.height = picture.height, .width = picture.width, .channels = channels};
  for (std::size_t at = 0; at < picture.pixels.size(); at += static_cast<std::size_t>(picture.channels)) {
    const std::uint8_t* const from = picture.pixels.data() + at;
    if (channels == 3) {
      other.pixels.insert(other.pixels.end(), 3, from[0]);
    } else {
      other.pixels.push_back(static_cast<std::uint8_t>((299 * from[0] + 587 * from[1] + 114 * from[2] + 500) / 1000));
    }
  }
  return other;
}

}  // namespace norma
