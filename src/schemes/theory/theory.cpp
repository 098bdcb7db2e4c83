// What a scheme predicts: one stack, or the two of an encoder-decoder.
#include "norma/schemes/theory.h"

#include "norma/schemes/trace.h"
#include "schemes/theory/propagation.h"

namespace norma {
namespace {

std::string norm_on_branch_in(const Expression& e) {
  if (e.kind == Expression::Kind::call && is_norm_name(e.name) && e.children.size() == 1) {
    const Expression& inner = *e.children[0];
    if (inner.kind == Expression::Kind::call && (inner.name == "f" || inner.name == "attn" || inner.name == "ffn"))
      return e.name;
  }
  for (const ExpressionPtr& child : e.children) {
    if (std::string found = norm_on_branch_in(*child); !found.empty()) return found;
  }
  return "";
}

}  // namespace

std::string norm_on_branches(const Scheme& scheme) {
  for (const auto& [key, formula] : scheme.formulas) {
    for (const Statement& statement : formula.statements) {
      if (std::string found = norm_on_branch_in(*statement.value); !found.empty()) return found;
    }
  }
  return "";
}

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

Theory predict(const Scheme& given, const BranchTables& branches, const TheoryConfig& config) {
  const Scheme scheme = with_options_in_tables(given);
  TheoryPropagation stack(scheme, branches, config);
  stack.forward();
  stack.backward({1, 0});
  return stack.take();
}

EncoderDecoderTheory predict(const Scheme& given, const EncoderDecoderTables& branches, const TheoryConfig& config) {
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
