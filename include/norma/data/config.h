// What a configuration file can say about data: the `[data]` table, key by key (docs/data.md).
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "norma/data/diffusion.h"

namespace norma {

struct DataConfig {
  // grammar, sentences, hops, copy, reverse, sort, recall, masked_grammar, masked_sentences are generated; text,
  // tokens, masked, translation, classification read files
  std::string task = "grammar";

  // Files. Without validation_path the last validation_fraction of the training data is held out.
  std::string path = "";
  std::string validation_path = "";
  std::string target_path = "";             // translation: the second file, line by line; empty: `path` holds TSV pairs
  std::string validation_target_path = "";  // the same for validation_path
  double validation_fraction = 0.1;
  std::int64_t evaluation_batches = 8;  // at most so many; 0: all there are, or 8 of a generated task
  std::string held_out = "all";         // even, odd: every other of twice as many, so that tuning and judging differ
  std::string order = "permuted";       // text: every window once per epoch; "random": offsets drawn independently

  // Tokens.
  std::string tokenizer = "bytes";  // bytes, characters, words, gpt2, sentencepiece
  std::string tokenizer_path = "";  // gpt2: folder with vocab.json and merges.txt; sentencepiece: model file
  std::string sentencepiece_model = "unigram";  // or "bpe"; how to train one when tokenizer_path is empty
  std::int64_t vocabulary = 0;                  // largest vocabulary; 0: as large as the data and the tokenizer make it

  // Classification, and translation from one file. Columns count from 0; -1 finds them by header or by layout.
  std::string layout = "auto";  // tsv, label-first ("label text"), auto
  std::string header = "auto";  // whether the first line names columns: yes, no, auto
  std::int64_t text_column = -1;
  std::int64_t second_text_column = -1;
  std::int64_t label_column = -1;

  double mask_fraction = 0.15;  // masked tasks: share of tokens to be predicted

  // Generated tasks; 0 stands for the task's own default.
  std::int64_t depth = 0;    // grammar, sentences: levels of nesting
  std::int64_t hops = 0;     // hops: pointers to follow
  std::int64_t symbols = 0;  // grammar, hops, copy, reverse, sort, recall: size of the alphabet
  std::int64_t choices = 0;  // grammar: rules for each symbol

  std::map<std::string, double> settings = {};  // of one task alone, by name

  DiffusionConfig diffusion = {};  // of models that take noise away: the [diffusion] table
};

}  // namespace norma
