// PDF 1.5 by hand: one page, the font of figures as an embedded TrueType font whose codes are glyph numbers.
#include <fmt/format.h>

#include <set>

#include "report/figures/font.h"
#include "report/figures/writers.h"

namespace norma::draw {
namespace {

constexpr int kFontObjects = 5, kObjects = 10;
constexpr double kPointsPerMillimetre = 72 / 25.4;

std::string stream(std::string_view dictionary, std::string_view bytes) {
  const std::string packed = deflated(bytes);
  return fmt::format("<<{}/Filter/FlateDecode/Length {}>>\nstream\n{}\nendstream", dictionary, packed.size(), packed);
}

// So that texts can be searched and copied.
std::string letters_by_glyph() {
  std::string map =
      "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /Letters def /CMapType 2 def\n"
      "1 begincodespacerange <0000> <ffff> endcodespacerange\n";
  const auto& letters = Font::get().letters();
  for (std::size_t from = 0; from < letters.size(); from += 100) {  // at most 100 to a block
    const std::size_t to = std::min(letters.size(), from + 100);
    map += fmt::format("{} beginbfchar\n", to - from);
    for (std::size_t i = from; i < to; ++i) {
      map += fmt::format("<{:04x}> <{:04x}>\n", letters[i].second, static_cast<unsigned>(letters[i].first));
    }
    map += "endbfchar\n";
  }
  return map + "endcmap CMapName currentdict /CMap defineresource pop end end";
}

std::vector<std::string> font_objects() {
  const Font& font = Font::get();
  std::string widths;
  for (int i = 0; i < font.glyphs(); ++i) widths += fmt::format("{} ", number_text(1000 * font.advance(i)));
  return {
      "<</Type/Font/Subtype/Type0/BaseFont/NORMAA+Arimo/Encoding/Identity-H/DescendantFonts[2 0 R]/ToUnicode 5 0 R>>",
      fmt::format("<</Type/Font/Subtype/CIDFontType2/BaseFont/NORMAA+Arimo/CIDSystemInfo<</Registry(Adobe)/Ordering"
                  "(Identity)/Supplement 0>>/FontDescriptor 3 0 R/CIDToGIDMap/Identity/W[0[{}]]>>",
                  widths),
      "<</Type/FontDescriptor/FontName/NORMAA+Arimo/Flags 4/FontBBox[-200 -300 1300 1000]/ItalicAngle 0/Ascent 905"
      "/Descent -212/CapHeight 688/StemV 80/FontFile2 4 0 R>>",
      stream(fmt::format("/Length1 {}", embedded_font().size()), embedded_font()), stream("", letters_by_glyph())};
}

void append_object(std::string& file, std::vector<std::size_t>& offsets, std::size_t base, std::string_view body) {
  offsets.push_back(base + file.size());
  file += fmt::format("{} 0 obj\n{}\nendobj\n", offsets.size(), body);
}

struct Beginning {
  std::string bytes;
  std::vector<std::size_t> offsets;
};

const Beginning& beginning() {
  static const Beginning made = [] {
    Beginning begin{.bytes = "%PDF-1.5\n%\xe2\xe3\xcf\xd3\n", .offsets = {}};
    for (const std::string& object : font_objects()) append_object(begin.bytes, begin.offsets, 0, object);
    return begin;
  }();
  return made;
}

// Names of states of opacity are their hundredths.
int hundredths(const Paint& paint) { return static_cast<int>(100 * paint.opacity + 0.5); }

std::string colour(const Paint& paint, const char* op) {
  const Rgb rgb = colour_of(paint);
  return fmt::format("{:.3f} {:.3f} {:.3f} {}\n", rgb.red / 255.0, rgb.green / 255.0, rgb.blue / 255.0, op);
}

class Content {
 public:
  explicit Content(double height) : height_(height) {}

  void add(const Shape& shape) {
    if (shape.points.size() < 2) return;
    const bool fill = shape.fill.tone != Tone::none, stroke = shape.stroke.tone != Tone::none;
    if (!fill && !stroke) return;
    if (fill) state(shape.fill), out += colour(shape.fill, "rg");
    if (stroke) {
      if (!fill) state(shape.stroke);
      out += colour(shape.stroke, "RG") + number_text(shape.width) + " w ";
      out += shape.dash > 0 ? fmt::format("[{0} {0}] 0 d\n", number_text(shape.dash)) : "[] 0 d\n";
    }
    const char* op = "m";
    for (const Point& p : shape.points) {
      out += fmt::format("{} {} {} ", number_text(p.x), number_text(height_ - p.y), op);
      op = "l";
    }
    out += shape.closed ? (fill && stroke ? "b\n"
                           : fill         ? "h f\n"
                                          : "s\n")
                        : (fill && stroke ? "B\n"
                           : fill         ? "f\n"
                                          : "S\n");
  }

  void add(const Text& text) {
    const Font& font = Font::get();
    const double width = font.width(text.text, text.size);
    const double back = text.anchor == Anchor::end ? width : text.anchor == Anchor::middle ? width / 2 : 0;
    const double x = text.at.x - (text.upwards ? 0 : back), y = height_ - text.at.y - (text.upwards ? back : 0);
    state(text.paint);
    out += colour(text.paint, "rg");
    out += fmt::format("BT /F {} Tf {} {} {} Tm <", number_text(text.size), text.upwards ? "0 1 -1 0" : "1 0 0 1",
                       number_text(x), number_text(y));
    for (const char32_t letter : code_points(text.text)) out += fmt::format("{:04x}", font.glyph(letter));
    out += "> Tj ET\n";
  }

  std::string states() const {
    std::string all;
    for (const int one : opacities_) all += fmt::format("/A{0}<</ca {1:.2f}/CA {1:.2f}>>", one, one / 100.0);
    return all;
  }

  std::string out = "1 J 1 j\n";

 private:
  void state(const Paint& paint) {
    opacities_.insert(hundredths(paint));
    out += fmt::format("/A{} gs ", hundredths(paint));
  }

  double height_;
  std::set<int> opacities_;
};

// In UTF-16, which PDF takes for all letters.
std::string title_text(std::string_view title) {
  std::string text = "<feff";
  for (const char32_t letter : code_points(title)) {
    if (letter < 0x10000) text += fmt::format("{:04x}", static_cast<unsigned>(letter));
  }
  return text + ">";
}

}  // namespace

std::string pdf_beginning() { return beginning().bytes; }

std::string write_pdf_rest(const Scene& scene, double millimetres, std::string_view title) {
  const double scale = millimetres * kPointsPerMillimetre / scene.width;
  Content content(scene.height);
  content.out = fmt::format("{0:.5f} 0 0 {0:.5f} 0 0 cm\n", scale) + content.out;
  for (const auto& mark : scene.marks) std::visit([&](const auto& one) { content.add(one); }, mark);

  const std::size_t base = beginning().bytes.size();
  std::vector<std::size_t> offsets = beginning().offsets;
  std::string file;
  static_assert(kFontObjects == 5);
  append_object(file, offsets, base, "<</Type/Catalog/Pages 7 0 R>>");
  append_object(file, offsets, base, "<</Type/Pages/Kids[8 0 R]/Count 1>>");
  append_object(file, offsets, base,
                fmt::format("<</Type/Page/Parent 7 0 R/MediaBox[0 0 {} {}]/Contents 9 0 R/Resources<</Font<</F 1 0 R>>"
                            "/ExtGState<<{}>>>>>>",
                            number_text(scene.width * scale), number_text(scene.height * scale), content.states()));
  append_object(file, offsets, base, stream("", content.out));
  append_object(file, offsets, base, fmt::format("<</Title {}/Producer(norma)>>", title_text(title)));
  const std::size_t table = base + file.size();
  file += fmt::format("xref\n0 {}\n0000000000 65535 f \n", kObjects + 1);
  for (const std::size_t offset : offsets) file += fmt::format("{:010} 00000 n \n", offset);
  file += fmt::format("trailer\n<</Size {}/Root 6 0 R/Info 10 0 R>>\nstartxref\n{}\n%%EOF\n", kObjects + 1, table);
  return file;
}

}  // namespace norma::draw
