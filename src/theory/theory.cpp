// What a scheme predicts: one stack, or the two of an encoder-decoder.
#include "theory/theory.h"

#include "theory/propagation.h"

namespace norma {
void check_predicted(const Scheme& given, const TheoryConfig& config) {
  const Scheme scheme = with_options_in_tables(given);
  TheoryPropagation(scheme, BranchTables{}, config).compile_all();
}

void check_predicted_encoder_decoder(const Scheme& given, const TheoryConfig& config) {
  const Scheme scheme = with_options_in_tables(given);
  const EncoderDecoderTables none;
  TheoryPropagation(scheme, none.encoder, config, StackKind::encoder).compile_all();
  TheoryPropagation(scheme, none.decoder, config, StackKind::decoder, &none).compile_all();
}

Theory propagate(const Scheme& given, const BranchTables& branches, const TheoryConfig& config) {
  const Scheme scheme = with_options_in_tables(given);
  TheoryPropagation stack(scheme, branches, config);
  stack.forward();
  stack.backward({1, 0});
  return stack.take();
}

EncoderDecoderTheory propagate(const Scheme& given, const EncoderDecoderTables& branches, const TheoryConfig& config) {
  const Scheme scheme = with_options_in_tables(given);
  TheoryPropagation encoder(scheme, branches.encoder, config, StackKind::encoder);
  TheoryPropagation decoder(scheme, branches.decoder, config, StackKind::decoder, &branches);
  encoder.forward();
  decoder.remember(encoder.output());
  decoder.forward();
  decoder.backward({1, 0});
  encoder.backward(decoder.memory_gradient());
  return {encoder.take(), decoder.take()};
}

}  // namespace norma
