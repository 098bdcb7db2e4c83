#include "store/safetensors_header.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>

#include "norma/core/error.h"
#include "norma/core/names.h"
#include "store/json_text.h"

namespace norma {
namespace {

constexpr std::string_view kMetadata = "__metadata__";
constexpr std::size_t kMaxRank = 64;
constexpr std::uint64_t kMaxBytes = std::numeric_limits<std::int64_t>::max();

// Receives the parser's events and accepts exactly the shape of a header. A document tree would keep the last of two
// equal names in silence and grow with every bracket of a hostile file.
class HeaderEvents final : public nlohmann::json_sax<nlohmann::json> {
 public:
  SafetensorsHeader take() { return std::move(header_); }

  bool start_object(std::size_t) override {
    switch (place_) {
      case Place::outside: place_ = Place::top; return true;
      case Place::entry:
        place_ = name_ == kMetadata ? Place::metadata : Place::tensor;
        dtype_.reset();
        shape_.reset();
        offsets_.reset();
        return true;
      default: fail("{} holds an object where none belongs", where());
    }
  }

  bool key(std::string& text) override {
    switch (place_) {
      case Place::top:
        if (!names_.insert(text).second) fail("the name '{}' occurs twice", text);
        name_ = text;
        place_ = Place::entry;
        return true;
      case Place::metadata:
        if (header_.metadata.contains(text)) fail("the metadata hold '{}' twice", text);
        metadata_key_ = text;
        place_ = Place::metadata_value;
        return true;
      case Place::tensor:
        if (text != "dtype" && text != "shape" && text != "data_offsets") {
          const std::vector<std::string> known = {"dtype", "shape", "data_offsets"};
          fail("tensor '{}' has the unknown field '{}'{}", name_, text, did_you_mean(text, known));
        }
        field_ = text;
        place_ = Place::field;
        return true;
      default: fail("{} holds a key where none belongs", where());
    }
  }

  bool string(std::string& text) override {
    if (place_ == Place::metadata_value) {
      header_.metadata.emplace(metadata_key_, text);
      place_ = Place::metadata;
    } else if (place_ == Place::field && field_ == "dtype") {
      if (dtype_) fail("tensor '{}' has two fields 'dtype'", name_);
      try {
        dtype_ = parse_element_type(text);
      } catch (const Error& error) {
        fail("tensor '{}': {}", name_, error.what());
      }
      place_ = Place::tensor;
    } else {
      fail("{} is a string", where());
    }
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::field || field_ == "dtype") fail("{} is an array", where());
    std::optional<std::vector<std::int64_t>>& list = field_ == "shape" ? shape_ : offsets_;
    if (list) fail("tensor '{}' has two fields '{}'", name_, field_);
    list_ = &list.emplace();
    place_ = Place::list;
    return true;
  }

  bool number_unsigned(std::uint64_t value) override {
    if (place_ != Place::list) fail("{} is a number", where());
    if (value > kMaxBytes) fail("tensor '{}': {} in '{}' is too large", name_, value, field_);
    if (list_->size() == kMaxRank) fail("tensor '{}': '{}' has more than {} entries", name_, field_, kMaxRank);
    list_->push_back(static_cast<std::int64_t>(value));
    return true;
  }

  bool end_array() override {
    place_ = Place::tensor;
    return true;
  }

  bool end_object() override {
    if (place_ == Place::tensor) finish_tensor();
    place_ = place_ == Place::top ? Place::done : Place::top;
    return true;
  }

  bool null() override { fail("{} is null", where()); }
  bool boolean(bool) override { fail("{} is a boolean", where()); }
  bool number_integer(std::int64_t value) override { fail("{} is the negative number {}", where(), value); }
  bool number_float(double, const std::string& text) override { fail("{} is the number {}", where(), text); }
  bool binary(binary_t&) override { fail("{} is binary", where()); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception&) override {
    fail("the header is not JSON at its byte {}", position);
  }

 private:
  enum class Place : std::uint8_t { outside, top, entry, metadata, metadata_value, tensor, field, list, done };

  std::string where() const {
    switch (place_) {
      case Place::metadata:
      case Place::metadata_value: return fmt::format("the value of '{}' in the metadata", metadata_key_);
      case Place::field:
      case Place::list: return fmt::format("'{}' of tensor '{}'", field_, name_);
      case Place::entry: return fmt::format("the entry '{}'", name_);
      default: return "the header";
    }
  }

  void finish_tensor() {
    if (!dtype_ || !shape_ || !offsets_)
      fail("tensor '{}' has no field '{}'", name_, !dtype_ ? "dtype" : !shape_ ? "shape" : "data_offsets");
    if (offsets_->size() != 2) fail("tensor '{}' has {} data offsets; expected 2", name_, offsets_->size());
    const auto begin = static_cast<std::uint64_t>((*offsets_)[0]), end = static_cast<std::uint64_t>((*offsets_)[1]);
    if (begin > end) fail("tensor '{}' begins at byte {} and ends at {}", name_, begin, end);
    header_.tensors.push_back({name_, *dtype_, std::move(*shape_), begin, end});
  }

  SafetensorsHeader header_;
  std::unordered_set<std::string> names_;
  Place place_ = Place::outside;
  std::string name_, field_, metadata_key_;
  std::optional<ElementType> dtype_;
  std::optional<std::vector<std::int64_t>> shape_, offsets_;
  std::vector<std::int64_t>* list_ = nullptr;  // the one of the two that is being read
};

void check_layout(std::vector<TensorInfo>& tensors, std::uint64_t data_bytes) {
  std::stable_sort(tensors.begin(), tensors.end(), [](const TensorInfo& a, const TensorInfo& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  std::uint64_t filled = 0;
  for (const TensorInfo& tensor : tensors) {
    const std::uint64_t needed = tensor_bytes(tensor.name, tensor.type, tensor.shape);
    if (tensor.end - tensor.begin != needed)
      fail("tensor '{}' is {} and needs {} bytes; its offsets give it {}", tensor.name, tensor.str(), needed,
           tensor.end - tensor.begin);
    if (tensor.end > data_bytes)
      fail("tensor '{}' ends at byte {} of the data, of which the file holds {}: it is cut short or damaged",
           tensor.name, tensor.end, data_bytes);
    if (tensor.begin != filled)
      fail("tensor '{}' begins at byte {} of the data; the tensor before it ends at {}", tensor.name, tensor.begin,
           filled);
    filled = tensor.end;
  }
  if (filled != data_bytes) fail("the tensors end at byte {} of the data, the file at {}", filled, data_bytes);
}

}  // namespace

SafetensorsHeader parse_header(std::string_view json, std::uint64_t data_bytes) {
  if (!json.starts_with('{')) fail("the header does not begin with '{{'");
  HeaderEvents events;
  nlohmann::json::sax_parse(json.begin(), json.end(), &events);
  SafetensorsHeader header = events.take();
  check_layout(header.tensors, data_bytes);
  return header;
}

std::uint64_t tensor_bytes(const std::string& name, ElementType type, std::span<const std::int64_t> shape) {
  std::uint64_t bytes = size_of(type);
  for (const std::int64_t size : shape) {
    if (size < 0) fail("tensor '{}' has the dimension {}", name, size);
    if (size > 0 && bytes > kMaxBytes / static_cast<std::uint64_t>(size))
      fail("tensor '{}' of shape [{}] is larger than any file", name, fmt::join(shape, ", "));
    bytes *= static_cast<std::uint64_t>(size);
  }
  return bytes;
}

std::string print_header(std::span<const TensorInfo> tensors, const Metadata& metadata) {
  std::string json = "{";
  const auto separate = [&json] {
    if (json.back() != '{') json += ',';
  };
  if (!metadata.empty()) {
    json += fmt::format("\"{}\":{{", kMetadata);
    for (const auto& [key, value] : metadata) {
      separate();
      json += quote_json(key) + ':' + quote_json(value);
    }
    json += '}';
  }
  for (const TensorInfo& tensor : tensors) {
    separate();
    json += fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", quote_json(tensor.name),
                        name_of(tensor.type), fmt::join(tensor.shape, ","), tensor.begin, tensor.end);
  }
  json += '}';
  constexpr std::size_t kAlignment = 64;
  json.append((kAlignment - (kLengthBytes + json.size()) % kAlignment) % kAlignment, ' ');
  if (json.size() > kMaxHeaderBytes)
    fail("the header of {} tensors has {} bytes; at most {} are allowed", tensors.size(), json.size(), kMaxHeaderBytes);
  const std::uint64_t length = json.size();
  std::string result(kLengthBytes, '\0');
  std::memcpy(result.data(), &length, kLengthBytes);
  return result + json;
}

std::size_t find_checksum_digits(std::string_view header) {
  // Quotes inside a string are escaped, so this can only be a key with a string for a value: one of the metadata.
  const std::string field = fmt::format("\"{}\":\"{}", kChecksumKey, kChecksumPrefix);
  const std::size_t found = header.find(field);
  if (found == std::string_view::npos) return found;
  const std::size_t digits = found + field.size();
  const bool whole = digits + kChecksumDigits < header.size() && header[digits + kChecksumDigits] == '"';
  return whole ? digits : std::string_view::npos;
}

std::string checksum_text(std::uint64_t hash) { return fmt::format("{:0{}x}", hash, kChecksumDigits); }

}  // namespace norma
