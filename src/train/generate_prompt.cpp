// Text as a trained model reads it.
#include <charconv>

#include "norma/core/error.h"
#include "norma/core/mapped_file.h"
#include "norma/data/source.h"
#include "norma/data/tokenizer.h"
#include "norma/data/vocabulary.h"
#include "norma/store/run_directory.h"
#include "norma/train/data.h"
#include "norma/train/generate.h"

namespace norma {
namespace {

constexpr std::string_view kSpaces = " \t\r\v\f\n";

// Calls `see` for what lies between white space.
template <typename See>
void for_each_word(std::string_view text, See&& see) {
  for (std::size_t at = 0; (at = text.find_first_not_of(kSpaces, at)) != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(kSpaces, at), text.size());
    see(text.substr(at, end - at));
    at = end;
  }
}

// These tokenizers have token 0 for what they do not know.
bool has_unknown(const std::string& tokenizer) {
  return tokenizer == "characters" || tokenizer == "words" || tokenizer == "sentencepiece";
}

bool unknown_in(const Tokenizer& tokenizer, std::string_view text) {
  const std::vector<std::int32_t> tokens = tokenizer.encode(text);
  return std::find(tokens.begin(), tokens.end(), 0) != tokens.end();
}

void check_known(const Tokenizer& tokenizer, std::string_view text) {
  if (!unknown_in(tokenizer, text)) return;
  for_each_word(text, [&](std::string_view word) {
    if (unknown_in(tokenizer, word))
      fail("the vocabulary ({}) has no token for '{}'", tokenizer.describe(), word.substr(0, 100));
  });
  fail("the vocabulary ({}) has no token for the white space of the text", tokenizer.describe());
}

std::vector<std::int32_t> parse_ids(std::string_view text, const Source& source) {
  std::vector<std::int32_t> ids;
  for_each_word(text, [&](std::string_view word) {
    std::int32_t id = -1;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || end != word.data() + word.size() || id < 0 || id >= source.vocabulary())
      fail("'{}' is not a token: these data are not text ({}); expected ids from 0 to {}", word.substr(0, 100),
           source.describe(), source.vocabulary() - 1);
    ids.push_back(id);
  });
  return ids;
}

}  // namespace

std::shared_ptr<const Source> open_data(const TrainedModel& model) {
  return open_source(model.config.data, batch_shape(model.config.model));
}

std::shared_ptr<const Source> open_vocabulary(const std::filesystem::path& path, const TrainedModel& model) {
  const bool folder = kind_of(path) == PathKind::folder;
  const RunView run(folder ? path : std::filesystem::absolute(path).parent_path().parent_path());
  if (kind_of(run.vocabulary_path()) != PathKind::file) return open_data(model);
  return parse_vocabulary(read_text(run.vocabulary_path(), std::size_t{1} << 30), run.vocabulary_path().string());
}

std::vector<std::int32_t> encode_prompt(const TrainedModel& model, const Source& source, std::string_view text,
                                        UnknownWords unknown) {
  const ModelConfig& config = model.config.model;
  const Tokenizer* tokenizer = source.tokenizer();
  if (unknown == UnknownWords::refused && tokenizer != nullptr && has_unknown(model.config.data.tokenizer))
    check_known(*tokenizer, text);
  std::vector<std::int32_t> tokens = tokenizer == nullptr ? parse_ids(text, source) : tokenizer->encode(text);
  if (tokens.empty()) fail("the text is empty; expected at least one token");
  if (config.family->speech != Speech::answers) return tokens;
  tokens.push_back(source.special().end);
  const std::int64_t most = config.source_time > 0 ? config.source_time : config.time;
  if (std::ssize(tokens) > most)
    fail("'{}...' has {} tokens with its end; the model reads at most {}", text.substr(0, 40), tokens.size(), most);
  return tokens;
}

}  // namespace norma
