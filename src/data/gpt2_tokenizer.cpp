// GPT-2's tokenizer (Radford et al. 2019): text is cut into pieces (pretokenize.h), the bytes of a piece merge by rank.
// In its files each byte is written as one printable character.
#include <array>
#include <cctype>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "data/byte_pairs.h"
#include "data/pretokenize.h"
#include "data/text_file.h"
#include "data/utf8.h"
#include "norma/core/error.h"
#include "norma/data/tokenizer.h"

namespace norma {
namespace {

constexpr std::size_t kMostTokens = std::size_t{1} << 22;  // far beyond any vocabulary in use

// Bytes and the characters that stand for them: printable ones themselves, the others U+0100 and up in order.
class ByteAlphabet {
 public:
  ByteAlphabet() {
    bytes_.fill(-1);
    char32_t other = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      bytes_[printable ? static_cast<char32_t>(byte) : other++] = byte;
    }
  }

  // The bytes that `text` stands for; throws Error when a character stands for none.
  std::string bytes_of(std::string_view text, std::string_view where) const {
    std::string bytes;
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint c = read_code_point(text, at);
      if (c.bytes == 0 || c.value >= bytes_.size() || bytes_[c.value] < 0) {
        fail("{}: '{}' is not written in GPT-2's alphabet of bytes", where, text);
      }
      bytes += static_cast<char>(static_cast<unsigned char>(bytes_[c.value]));
      at += static_cast<std::size_t>(c.bytes);
    }
    return bytes;
  }

 private:
  std::array<int, 0x180> bytes_;
};

// Bytes of each token, by id.
std::vector<std::string> read_vocabulary(std::string_view text_of_file, const std::string& path,
                                         const ByteAlphabet& alphabet) {
  const nlohmann::json json = parse_json(text_of_file);
  if (!json.is_object() || json.empty() || json.size() > kMostTokens) {
    fail("'{}' is not a vocabulary: expected a JSON object of tokens and their ids", path);
  }
  std::vector<std::string> tokens(json.size());
  std::vector<bool> seen(json.size(), false);
  for (const auto& [text, id] : json.items()) {
    const std::int64_t number = id.is_number_integer() ? id.get<std::int64_t>() : -1;
    if (number < 0 || number >= static_cast<std::int64_t>(tokens.size()) || seen[static_cast<std::size_t>(number)]) {
      fail("'{}': token '{}' has id {}; expected each of 0 to {} once", path, text, id.dump(), tokens.size() - 1);
    }
    seen[static_cast<std::size_t>(number)] = true;
    tokens[static_cast<std::size_t>(number)] = alphabet.bytes_of(text, path);
  }
  return tokens;
}

class Gpt2Tokenizer final : public Tokenizer {
 public:
  // The texts of both files; errors name them as they lie in `folder`.
  Gpt2Tokenizer(std::string vocabulary, std::string merges, const std::string& folder)
      : vocabulary_text_(std::move(vocabulary)), merges_text_(std::move(merges)) {
    const ByteAlphabet alphabet;
    tokens_ = read_vocabulary(vocabulary_text_, folder + "/vocab.json", alphabet);
    std::unordered_map<std::string_view, std::int32_t> ids;
    for (std::size_t i = 0; i < tokens_.size(); ++i) ids[tokens_[i]] = static_cast<std::int32_t>(i);
    for (int byte = 0; byte < 256; ++byte) {
      const char bytes[] = {static_cast<char>(static_cast<unsigned char>(byte))};
      const auto found = ids.find(std::string_view(bytes, 1));
      if (found == ids.end()) fail("'{}/vocab.json' has no token for the single byte 0x{:02x}", folder, byte);
      pairs_.set_byte(static_cast<unsigned char>(byte), found->second);
    }
    read_merges(folder + "/merges.txt", alphabet, ids);
  }

  std::int64_t vocabulary() const override { return static_cast<std::int64_t>(tokens_.size()); }

  void encode(std::string_view text, std::vector<std::int32_t>& tokens) const override {
    std::unordered_map<std::string_view, std::vector<std::int32_t>> known;  // words come again
    for (std::size_t begin = 0, end; begin < text.size(); begin = end) {
      end = end_of_piece(text, begin);
      const auto [place, added] = known.try_emplace(text.substr(begin, end - begin));
      if (added) pairs_.encode(place->first, place->second);
      tokens.insert(tokens.end(), place->second.begin(), place->second.end());
      if (known.size() == kMostKnown) known.clear();
    }
  }

  std::string decode(std::span<const std::int32_t> tokens) const override {
    std::string text;
    for (const std::int32_t token : tokens) {
      text += token >= 0 && token < vocabulary() ? tokens_[static_cast<std::size_t>(token)] : kReplacement;
    }
    return text;
  }

  std::string kind() const override { return "gpt2"; }
  std::string stored() const override {
    return nlohmann::json{{"vocab", vocabulary_text_}, {"merges", merges_text_}}.dump();
  }

  std::string describe() const override {
    return fmt::format("byte-level BPE of {} tokens, {} merges", vocabulary(), pairs_.merges());
  }

 private:
  static constexpr std::size_t kMostKnown = std::size_t{1} << 18;

  void read_merges(const std::string& path, const ByteAlphabet& alphabet,
                   const std::unordered_map<std::string_view, std::int32_t>& ids) {
    const std::string_view text = merges_text_;
    std::int32_t line = 0;
    for (std::size_t at = 0; at < text.size(); ++line) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      std::string_view entry = text.substr(at, end - at);
      at = end + 1;
      if (!entry.empty() && entry.back() == '\r') entry.remove_suffix(1);
      if (entry.empty() || (line == 0 && entry.starts_with("#version"))) continue;
      const std::size_t space = entry.find(' ');
      if (space == std::string_view::npos || entry.find(' ', space + 1) != std::string_view::npos) {
        fail("'{}' line {}: expected two tokens with a space between them", path, line + 1);
      }
      const std::string left = alphabet.bytes_of(entry.substr(0, space), path);
      const std::string right = alphabet.bytes_of(entry.substr(space + 1), path);
      const auto id_of = [&](const std::string& token) {
        const auto found = ids.find(token);
        if (found == ids.end()) fail("'{}' line {}: '{}' is not in the vocabulary", path, line + 1, token);
        return found->second;
      };
      pairs_.add_merge(id_of(left), id_of(right), {line, id_of(left + right)});
    }
  }

  std::string vocabulary_text_, merges_text_;
  std::vector<std::string> tokens_;
  BytePairs pairs_;
};

}  // namespace

TokenizerPointer gpt2_tokenizer(const std::string& folder) {
  if (folder.empty()) fail("GPT-2's tokenizer needs a folder with vocab.json and merges.txt; set data.tokenizer_path");
  const auto vocabulary = open_text_file(folder + "/vocab.json", "a vocabulary in JSON");
  const auto merges = open_text_file(folder + "/merges.txt", "a list of merges");
  return std::make_shared<Gpt2Tokenizer>(std::string(vocabulary->text()), std::string(merges->text()), folder);
}

TokenizerPointer restore_gpt2(const std::string& stored) {
  const nlohmann::json json = parse_json(stored);
  if (!json.is_object() || !json.contains("vocab") || !json.contains("merges"))
    fail("this is no stored BPE vocabulary");
  return std::make_shared<Gpt2Tokenizer>(json.at("vocab").get<std::string>(), json.at("merges").get<std::string>(),
                                         "the run's vocabulary");
}

}  // namespace norma
