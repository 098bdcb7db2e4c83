// PNG: scenes as pixels, letters from the outlines of the font.
#include <zlib.h>

#include <cmath>

#include "norma/core/error.h"
#include "report/figures/font.h"
#include "report/figures/raster.h"
#include "report/figures/writers.h"

namespace norma::draw {
namespace {

class Painter {
 public:
  Painter(const Scene& scene, double scale)
      : scale_(scale),
        width(static_cast<int>(std::lround(scene.width * scale))),
        height(static_cast<int>(std::lround(scene.height * scale))),
        canvas(width, height) {}

  void add(const Shape& shape) {
    if (shape.points.size() < 2) return;
    std::vector<Point> points;
    for (const Point& p : shape.points) points.push_back({p.x * scale_, p.y * scale_});
    canvas.fill({points}, shape.fill);
    if (shape.stroke.tone == Tone::none) return;
    Contours pen;
    if (shape.dash > 0) {
      for (const std::vector<Point>& piece : dashed(points, shape.dash * scale_)) {
        for (std::vector<Point>& part : stroked(piece, false, shape.width * scale_)) pen.push_back(std::move(part));
      }
    } else {
      pen = stroked(points, shape.closed, shape.width * scale_);
    }
    canvas.fill(pen, shape.stroke);
  }

  void add(const Text& text) {
    const Font& font = Font::get();
    const double width_of = font.width(text.text, text.size);
    double along = text.anchor == Anchor::end ? -width_of : text.anchor == Anchor::middle ? -width_of / 2 : 0;
    Contours letters;
    for (const char32_t letter : code_points(text.text)) {
      const int glyph = font.glyph(letter);
      for (std::vector<Point>& line : font.outline(glyph)) {
        for (Point& p : line) {
          const double x = along + p.x * text.size, y = -p.y * text.size;
          p = text.upwards ? Point{text.at.x + y, text.at.y - x} : Point{text.at.x + x, text.at.y + y};
          p = {p.x * scale_, p.y * scale_};
        }
        letters.push_back(std::move(line));
      }
      along += font.advance(glyph) * text.size;
    }
    canvas.fill(letters, text.paint);
  }

 private:
  double scale_;

 public:
  int width, height;
  Canvas canvas;
};

void append_u32(std::string& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xff);
}

void append_chunk(std::string& file, std::string_view kind, std::string_view data) {
  const std::string body = std::string(kind) + std::string(data);
  append_u32(file, static_cast<std::uint32_t>(data.size()));
  file += body;
  append_u32(file, static_cast<std::uint32_t>(
                       crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()))));
}

}  // namespace

std::string deflated(std::string_view bytes) {
  uLongf size = compressBound(static_cast<uLong>(bytes.size()));
  std::string packed(size, '\0');
  const int code = compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
                             reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uLong>(bytes.size()), 9);
  NORMA_ASSERT(code == Z_OK);  // the buffer is large enough
  packed.resize(size);
  return packed;
}

std::string png_file(int width, int height, std::string_view rgb, double scale) {
  const std::size_t row = 3 * static_cast<std::size_t>(width);
  NORMA_ASSERT(rgb.size() == row * static_cast<std::size_t>(height));
  std::string rows;
  for (std::size_t y = 0; y < static_cast<std::size_t>(height); ++y) {
    rows += '\0';  // no filter
    rows.append(rgb.substr(y * row, row));
  }
  std::string header, size;
  append_u32(header, static_cast<std::uint32_t>(width));
  append_u32(header, static_cast<std::uint32_t>(height));
  header += std::string("\x08\x02\x00\x00\x00", 5);  // 8 bits, RGB
  const auto per_metre = static_cast<std::uint32_t>(std::lround(96 * scale / 0.0254));
  append_u32(size, per_metre);
  append_u32(size, per_metre);
  size += '\x01';
  std::string file = "\x89PNG\r\n\x1a\n";
  append_chunk(file, "IHDR", header);
  append_chunk(file, "pHYs", size);
  append_chunk(file, "IDAT", deflated(rows));
  append_chunk(file, "IEND", "");
  return file;
}

std::string write_png(const Scene& scene, double scale) {
  Painter painter(scene, scale);
  for (const auto& mark : scene.marks) std::visit([&](const auto& one) { painter.add(one); }, mark);
  const auto& pixels = painter.canvas.pixels();
  return png_file(painter.width, painter.height,
                  {reinterpret_cast<const char*>(pixels.data()),
                   3 * static_cast<std::size_t>(painter.width) * static_cast<std::size_t>(painter.height)},
                  scale);
}

}  // namespace norma::draw
