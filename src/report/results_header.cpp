#include "report/results_header.h"

#include <nlohmann/json.hpp>

#include <cstdint>

#include "norma/core/error.h"

namespace norma {
namespace {

using Json = nlohmann::json;

// Follows the parser through the document and keeps three texts of its outermost object. As in JavaScript, the last of
// several equal keys counts.
class HeaderReader : public Json::json_sax_t {
 public:
  bool null() override { return value(nullptr); }
  bool boolean(bool) override { return value(nullptr); }
  bool number_integer(Json::number_integer_t) override { return value(nullptr); }
  bool number_unsigned(Json::number_unsigned_t) override { return value(nullptr); }
  bool number_float(Json::number_float_t, const std::string&) override { return value(nullptr); }
  bool string(std::string& text) override { return value(&text); }
  bool binary(Json::binary_t&) override { return value(nullptr); }
  bool start_object(std::size_t) override { return open(Outermost::object); }
  bool start_array(std::size_t) override { return open(Outermost::other); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(std::string& name) override {
    if (depth_ == 1) key_ = name;
    return true;
  }

  bool parse_error(std::size_t position, const std::string& token, const Json::exception& error) override {
    (void)token;
    fail("the results are not JSON at byte {}: {}", position, error.what());
  }

  ResultsHeader header() const {
    if (outermost_ != Outermost::object)
      fail("the results are JSON but not an object; expected what docs/results.md says");
    return header_;
  }

 private:
  enum class Outermost { object, other };

  bool value(const std::string* text) {
    if (depth_ != 1) return true;
    std::string* kept = key_ == "norma"     ? &header_.norma
                        : key_ == "kind"    ? &header_.kind
                        : key_ == "created" ? &header_.created
                                            : nullptr;
    if (kept != nullptr) *kept = text != nullptr ? *text : "";
    return true;
  }

  bool open(Outermost found) {
    value(nullptr);
    if (depth_++ == 0) outermost_ = found;
    return true;
  }

  bool close() {
    --depth_;
    return true;
  }

  ResultsHeader header_;
  std::string key_;
  std::int64_t depth_ = 0;
  Outermost outermost_ = Outermost::other;
};

}  // namespace

ResultsHeader read_results_header(std::string_view json) {
  HeaderReader reader;
  Json::sax_parse(json.begin(), json.end(), &reader);
  ResultsHeader header = reader.header();
  for (const auto& [name, text] :
       {std::pair("norma", &header.norma), std::pair("kind", &header.kind), std::pair("created", &header.created)}) {
    if (text->empty()) fail("the results have no text under '{}'; expected what docs/results.md says", name);
  }
  return header;
}

}  // namespace norma
