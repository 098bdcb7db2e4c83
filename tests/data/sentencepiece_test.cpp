// SentencePiece: models that are trained here, and what is refused in whose words.
#include <gtest/gtest.h>

#include "files.h"
#include "norma/data/tokenizer.h"

namespace norma {
namespace {

TEST(SentencePiece, TrainsAndKeepsTheText) {
  for (const char* model : {"unigram", "bpe"}) {
    const std::string text = nursery_text();
    const std::string trained = train_sentencepiece(text, 80, model);
    EXPECT_EQ(trained, train_sentencepiece(text, 80, model)) << "the same text gives the same model";
    const TokenizerPointer tokenizer = sentencepiece_tokenizer(trained);
    EXPECT_LE(tokenizer->vocabulary(), 81);
    EXPECT_GT(tokenizer->vocabulary(), 40);
    const std::vector<std::int32_t> tokens = tokenizer->encode(text);
    EXPECT_LT(tokens.size(), text.size() * 3 / 4);
    EXPECT_EQ(tokenizer->decode(tokens), text) << model;
    for (const std::int32_t token : tokens) EXPECT_TRUE(token >= 0 && token < tokenizer->vocabulary());
    EXPECT_NO_THROW(tokenizer->decode(std::vector<std::int32_t>{-1, 5000, 3}));
    EXPECT_NO_THROW(tokenizer->encode(random_bytes(500, 3)));
  }
}

TEST(SentencePiece, RefusesWhatItCannotUse) {
  EXPECT_NE(error_of([] { train_sentencepiece(nursery_text(), 80, "unigrm"); }).find("did you mean 'unigram'?"),
            std::string::npos);
  EXPECT_NE(error_of([] { train_sentencepiece(nursery_text(), 1, "bpe"); }), "");
  for (const std::string& error : {error_of([] { train_sentencepiece(nursery_text(), 5, "bpe"); }),
                                   error_of([] { train_sentencepiece(nursery_text(), 5000, "bpe"); }),
                                   error_of([] { train_sentencepiece("", 80, "bpe"); })}) {
    EXPECT_NE(error.find("could not train"), std::string::npos) << error;
    EXPECT_EQ(error.find(".cc("), std::string::npos) << "a line of the library's source: " << error;
  }
  for (unsigned seed = 0; seed < 50; ++seed) {
    const std::string error = error_of([&] { sentencepiece_tokenizer(random_bytes(300, seed)); });
    EXPECT_TRUE(error.ends_with("not a SentencePiece model")) << error;
  }
  EXPECT_NE(error_of([] { sentencepiece_tokenizer(""); }), "");
  const TemporaryFolder folder;
  const std::string path = folder.write("bad.model", "no model");
  const std::string error =
      error_of([&] { open_tokenizer({.tokenizer = "sentencepiece", .tokenizer_path = path}, "x"); });
  EXPECT_EQ(error, "data.tokenizer_path '" + path + "': this is not a SentencePiece model");
}

}  // namespace
}  // namespace norma
