// Reads the tables of TrueType that drawing needs. The file is part of the program, so it is not doubted.
#include "report/figures/font.h"

#include <algorithm>
#include <map>

#include "norma/core/error.h"

namespace norma::draw {
namespace {

class Bytes {
 public:
  explicit Bytes(std::string_view data) : data_(data) {}

  std::uint8_t u8(std::size_t at) const {
    NORMA_ASSERT(at < data_.size());
    return static_cast<std::uint8_t>(data_[at]);
  }
  std::uint16_t u16(std::size_t at) const { return static_cast<std::uint16_t>(u8(at) << 8 | u8(at + 1)); }
  std::int16_t i16(std::size_t at) const { return static_cast<std::int16_t>(u16(at)); }
  std::uint32_t u32(std::size_t at) const { return static_cast<std::uint32_t>(u16(at)) << 16 | u16(at + 2); }

 private:
  std::string_view data_;
};

std::map<std::string, std::string_view> tables_of(std::string_view file) {
  const Bytes bytes(file);
  std::map<std::string, std::string_view> tables;
  for (std::size_t i = 0; i < bytes.u16(4); ++i) {
    const std::size_t entry = 12 + 16 * i;
    tables[std::string(file.substr(entry, 4))] = file.substr(bytes.u32(entry + 8), bytes.u32(entry + 12));
  }
  return tables;
}

// cmap format 4: segments of code points with a difference, or a list of glyphs.
std::vector<std::pair<char32_t, int>> letters_of(std::string_view cmap) {
  const Bytes top(cmap);
  const Bytes map(cmap.substr(top.u32(4 + 4)));
  NORMA_ASSERT(map.u16(0) == 4);
  const std::size_t segments = map.u16(6) / 2u, ends = 14, starts = ends + 2 * segments + 2,
                    deltas = starts + 2 * segments, ranges = deltas + 2 * segments;
  std::vector<std::pair<char32_t, int>> letters;
  for (std::size_t s = 0; s < segments; ++s) {
    const std::uint32_t first = map.u16(starts + 2 * s), last = map.u16(ends + 2 * s);
    const std::uint16_t delta = map.u16(deltas + 2 * s), range = map.u16(ranges + 2 * s);
    for (std::uint32_t c = first; c <= last && c != 0xffff; ++c) {
      std::uint16_t glyph = static_cast<std::uint16_t>(c);
      if (range != 0) glyph = map.u16(ranges + 2 * s + range + 2 * (c - first));
      if (range == 0 || glyph != 0) glyph = static_cast<std::uint16_t>(glyph + delta);
      if (glyph != 0) letters.emplace_back(static_cast<char32_t>(c), glyph);
    }
  }
  return letters;
}

struct Knot {
  Point at;
  bool on = false;  // the curve; others pull it
};

// Coordinates are differences of one or two bytes, or none, as the flags say.
std::vector<double> coordinates(const Bytes& glyph, std::size_t& at, const std::vector<std::uint8_t>& flags,
                                int shorter, int same) {
  std::vector<double> all;
  double value = 0;
  for (const std::uint8_t flag : flags) {
    if (flag & shorter) {
      value += (flag & same) ? glyph.u8(at) : -static_cast<double>(glyph.u8(at));
      at += 1;
    } else if (!(flag & same)) {
      value += glyph.i16(at);
      at += 2;
    }
    all.push_back(value);
  }
  return all;
}

// A quadratic curve as six lines.
void bend(std::vector<Point>& line, Point from, Point pull, Point to) {
  for (int i = 1; i <= 6; ++i) {
    const double t = i / 6.0, s = 1 - t;
    line.push_back(
        {s * s * from.x + 2 * s * t * pull.x + t * t * to.x, s * s * from.y + 2 * s * t * pull.y + t * t * to.y});
  }
}

Point middle(Point a, Point b) { return {(a.x + b.x) / 2, (a.y + b.y) / 2}; }

std::vector<Point> flattened(const std::vector<Knot>& knots) {
  const std::size_t count = knots.size();
  std::size_t first = 0;
  while (first < count && !knots[first].on) ++first;
  if (first == count) return {};  // a contour without a point on it; this font has none
  std::vector<Point> line = {knots[first].at};
  for (std::size_t i = 1; i <= count; ++i) {
    const Knot &knot = knots[(first + i) % count], &before = knots[(first + i - 1) % count];
    if (knot.on && before.on) line.push_back(knot.at);
    if (knot.on) continue;
    const Knot& next = knots[(first + i + 1) % count];
    bend(line, line.back(), knot.at, next.on ? next.at : middle(knot.at, next.at));
  }
  return line;
}

char32_t decode(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<std::uint8_t>(text[i]) : 0u; };
  const unsigned lead = byte(at++);
  if (lead < 0x80) return lead;
  const int more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc2 ? 1 : 0;
  if (more == 0 || lead > 0xf4) return 0xfffd;
  char32_t letter = lead & (0x3fu >> more);
  for (int i = 0; i < more; ++i) {
    if ((byte(at) & 0xc0u) != 0x80u) return 0xfffd;
    letter = letter << 6 | (byte(at++) & 0x3fu);
  }
  return letter;
}

}  // namespace

std::vector<char32_t> code_points(std::string_view utf8) {
  std::vector<char32_t> all;
  for (std::size_t at = 0; at < utf8.size();) all.push_back(decode(utf8, at));
  return all;
}

const Font& Font::get() {
  static const Font font;
  return font;
}

Font::Font() {
  const std::map<std::string, std::string_view> tables = tables_of(embedded_font());
  const auto table = [&](const char* name) { return Bytes(tables.at(name)); };
  units_ = table("head").u16(18);
  const int count = table("maxp").u16(4), measured = table("hhea").u16(34);
  const bool wide = table("head").i16(50) != 0;
  for (int i = 0; i < count; ++i) {
    advances_.push_back(table("hmtx").u16(static_cast<std::size_t>(4 * std::min(i, measured - 1))) / units_);
  }
  for (std::size_t i = 0; i <= static_cast<std::size_t>(count); ++i) {
    offsets_.push_back(wide ? table("loca").u32(4 * i) : 2u * table("loca").u16(2 * i));
  }
  outlines_ = tables.at("glyf");
  letters_ = letters_of(tables.at("cmap"));
  std::sort(letters_.begin(), letters_.end());
}

int Font::glyph(char32_t letter) const {
  const auto found = std::lower_bound(letters_.begin(), letters_.end(), std::pair(letter, 0));
  return found != letters_.end() && found->first == letter ? found->second : 0;
}

double Font::advance(int glyph) const { return advances_[static_cast<std::size_t>(glyph)]; }

std::vector<std::vector<Point>> Font::outline(int glyph) const {
  const auto index = static_cast<std::size_t>(glyph);
  const std::size_t start = offsets_[index], size = offsets_[index + 1] - start;
  if (size == 0) return {};  // a space
  const Bytes bytes(outlines_.substr(start, size));
  const int contours = bytes.i16(0);
  NORMA_ASSERT(contours >= 0);  // composed glyphs were taken apart when the subset was made
  std::vector<std::size_t> ends;
  std::size_t at = 10;
  for (int i = 0; i < contours; ++i, at += 2) ends.push_back(bytes.u16(at));
  at += 2u + bytes.u16(at);  // no instructions are run
  std::vector<std::uint8_t> flags;
  while (contours > 0 && flags.size() <= ends.back()) {
    const std::uint8_t flag = bytes.u8(at++);
    const int times = (flag & 8) ? bytes.u8(at++) + 1 : 1;
    flags.insert(flags.end(), static_cast<std::size_t>(times), flag);
  }
  const std::vector<double> x = coordinates(bytes, at, flags, 2, 16), y = coordinates(bytes, at, flags, 4, 32);
  std::vector<std::vector<Point>> lines;
  std::size_t i = 0;
  for (const std::size_t end : ends) {
    std::vector<Knot> knots;
    for (; i <= end; ++i) knots.push_back({{x[i] / units_, y[i] / units_}, (flags[i] & 1) != 0});
    lines.push_back(flattened(knots));
  }
  return lines;
}

double Font::width(std::string_view text, double size) const {
  double sum = 0;
  for (const char32_t letter : code_points(text)) sum += advance(glyph(letter));
  return sum * size;
}

std::string fitted(std::string_view text, double size, double width) {
  const Font& font = Font::get();
  if (font.width(text, size) <= width) return std::string(text);
  std::string kept;
  double used = font.width("…", size);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t before = at;
    used += size * font.advance(font.glyph(decode(text, at)));
    if (used > width) break;
    kept += text.substr(before, at - before);
  }
  return kept + "…";
}

}  // namespace norma::draw
