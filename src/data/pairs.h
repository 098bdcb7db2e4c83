// Rows of an encoder-decoder, from files or generated: the encoder reads "x <eos>", the decoder reads "<bos> y" and is
// to say "y <eos>"; padding is not counted. Both sides share one vocabulary: the task's own tokens, then <pad>, <bos>,
// <eos>.
#pragma once

#include "norma/data/source.h"

namespace norma {

inline constexpr std::int64_t kPairMarks = 3;

// Behind `base` tokens of the task's own.
SpecialTokens pair_marks(std::int64_t base);

// Padding everywhere.
void clear_pairs(const BatchShape& shape, const SpecialTokens& marks, Batch& batch);

// Where x and y of a row are written, in their own arrays; end_pair does the rest.
std::int32_t* pair_source(const BatchShape& shape, std::int64_t row, Batch& batch);
std::int32_t* pair_answer(const BatchShape& shape, std::int64_t row, Batch& batch);
void end_pair(const BatchShape& shape, const SpecialTokens& marks, std::int64_t row, std::int64_t source_length,
              std::int64_t answer_length, Batch& batch);

}  // namespace norma
