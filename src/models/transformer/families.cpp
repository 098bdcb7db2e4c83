// Decoder, encoder and encoder-decoder: tokens and positions in, one or two stacks, a head over the vocabulary or over
// classes.
#include "models/transformer/families.h"

#include <cmath>

#include "models/model_builder.h"
#include "norma/core/error.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/embedding.h"
#include "norma/ops/matmul.h"
#include "norma/ops/softmax.h"
#include "norma/ops/views.h"

namespace norma {
namespace {

using Content = InputSpec::Content;

std::int64_t source_time(const ModelConfig& c) { return c.source_time == 0 ? c.time : c.source_time; }
std::int64_t encoder_depth(const ModelConfig& c) { return c.encoder_layers == 0 ? c.layers : c.encoder_layers; }

void check_tokens_and_heads(const ModelConfig& c) {
  const auto positive = [](const char* name, std::int64_t value) {
    if (value < 1) fail("{} is {}; expected at least 1", name, value);
  };
  const auto not_negative = [](const char* name, std::int64_t value) {
    if (value < 0) fail("{} is {}; expected 0 or more", name, value);
  };
  positive("vocabulary", c.vocabulary);
  positive("time", c.time);
  not_negative("encoder_layers", c.encoder_layers);
  not_negative("kv_heads", c.kv_heads);
  not_negative("source_vocabulary", c.source_vocabulary);
  not_negative("source_time", c.source_time);
}

void check_says_tokens(const ModelConfig& c) {
  check_tokens_and_heads(c);
  if (c.classes > 0) fail("classes are for encoders; another family predicts tokens");
}

void check_encoder(const ModelConfig& c) {
  check_tokens_and_heads(c);
  if (c.classes > 0 && c.tied) fail("a classifier has no token head that could be tied");
}

InputSpec tokens(const ModelConfig& c) {
  return {"tokens", Content::ids, {{"batch", c.batch}, {"time", c.time}}, c.vocabulary};
}

InputSpec targets(const ModelConfig& c) {
  if (c.classes > 0) return {"targets", Content::targets, {{"batch", c.batch}}, c.classes};
  return {"targets", Content::targets, {{"batch", c.batch}, {"time", c.time}}, c.vocabulary};
}

InputSpec lengths(const char* name, const ModelConfig& c, std::int64_t whole) {
  return {name, Content::lengths, {{"batch", c.batch}}, whole};
}

std::vector<InputSpec> decoder_inputs(const ModelConfig& c) { return {tokens(c), targets(c)}; }

std::vector<InputSpec> encoder_inputs(const ModelConfig& c) {
  return {tokens(c), targets(c), lengths("lengths", c, c.time)};
}

std::vector<InputSpec> encoder_decoder_inputs(const ModelConfig& c) {
  const std::int64_t time = source_time(c), words = c.source_vocabulary == 0 ? c.vocabulary : c.source_vocabulary;
  return {tokens(c),
          targets(c),
          {"source", Content::ids, {{"batch", c.batch}, {"source_time", time}}, words},
          lengths("source_lengths", c, time)};
}

OutputSpec token_output(const ModelConfig& c) {
  return {OutputSpec::Kind::classes, c.classes > 0 ? Shape{c.batch, c.classes} : Shape{c.batch, c.time, c.vocabulary}};
}

std::vector<StackSites> decoder_stack(const ModelConfig& c) {
  return {{.layers = c.layers, .branches = transformer_layer()}};
}

std::vector<StackSites> encoder_stack(const ModelConfig& c) {
  return {{.layers = c.layers, .branches = transformer_layer(Memory::absent, Mask::full)}};
}

std::vector<StackSites> two_stacks(const ModelConfig& c) {
  return {{.scope = "encoder",
           .kind = StackKind::encoder,
           .layers = encoder_depth(c),
           .other_layers = c.layers,
           .branches = transformer_layer(Memory::absent, Mask::full)},
          {.scope = "decoder",
           .kind = StackKind::decoder,
           .layers = c.layers,
           .other_layers = encoder_depth(c),
           .branches = transformer_layer(Memory::present)}};
}

Wire token_table(ModelBuilder& b, const char* name, std::int64_t vocabulary, const SchemeRules& rules) {
  const ModelConfig& c = b.config();
  return b.parameters().share({vocabulary, c.width},
                              b.outer(name, "embedding", c.embedding_std, rules, UnitVectors::rows));
}

// What multiplies tokens: the scheme's say goes before the model's.
double token_scale(const ModelConfig& c, const SchemeRules& rules) {
  return rules.token_scale.value_or(c.scale_embedding ? std::sqrt(static_cast<double>(c.width)) : 1);
}

// Tokens and their positions; `side` is "" or "source_".
Wire embed(ModelBuilder& b, Wire table, Wire ids, const std::string& side, const SchemeRules& rules) {
  const ModelConfig& c = b.config();
  const std::int64_t time = ids.shape()[1];
  Wire x = embedding(table, ids);
  if (const double scale = token_scale(c, rules); scale != 1) x = x * scale;
  const std::string name = "embedding." + side + "position";
  if (c.positions == Positions::learned) {
    const ParameterSpec spec = b.outer(name.c_str(), "position", c.embedding_std, rules, UnitVectors::none);
    x = add_positions(x, b.parameters().make({time, c.width}, spec));
  } else if (c.positions == Positions::sinusoidal) {
    x = add_positions(x, sinusoidal_positions(b.graph(), name, time, c.width, c.dtype));
  }
  return b.dropped(x, side + "embedding");
}

double token_variance(const ModelConfig& c, const SchemeRules& rules) {
  const auto variance_of = [&](const char* role) {
    const double table = rules.init.deviation_of(role).value_or(c.embedding_std) * rules.init.gain_of(role);
    return table * table;
  };
  const double scale = token_scale(c, rules), variance = variance_of("embedding") * scale * scale;
  if (c.positions == Positions::sinusoidal) return variance + 0.5;
  return variance + (c.positions == Positions::learned ? variance_of("position") : 0);
}

// The mean over a sample's tokens; padding has weight 0.
Wire pooled(ModelBuilder& b, Wire x, Wire sample_lengths) {
  const Shape& s = x.shape();
  const Wire weights = softmax(b.graph().fill({{s[0], 1, s[1]}, b.config().dtype}, 0), Mask::full, sample_lengths);
  return reshape(matmul(weights, x), {s[0], s[2]});
}

void build_single(ModelBuilder& b, const StackConfig& stack) {
  const ModelConfig& c = b.config();
  const SchemeRules rules = b.rules(stack);
  const Wire table = token_table(b, "embedding.token", c.vocabulary, rules);
  const Wire x = b.through(stack, embed(b, table, b.input("tokens"), "", rules));
  const bool classifier = c.classes > 0;
  b.classify(classifier ? pooled(b, x, stack.lengths) : x, classifier ? c.classes : c.vocabulary, stack, rules,
             c.tied ? table : Wire());
}

void build_decoder(ModelBuilder& b) { build_single(b, b.stack_config(0)); }

void build_encoder(ModelBuilder& b) {
  StackConfig stack = b.stack_config(0);
  stack.lengths = b.input("lengths");
  build_single(b, stack);
}

void build_encoder_decoder(ModelBuilder& b) {
  const ModelConfig& c = b.config();
  StackConfig below = b.stack_config(0), above = b.stack_config(1);
  below.lengths = above.memory_lengths = b.input("source_lengths");
  const SchemeRules source_rules = b.rules(below), rules = b.rules(above);
  const bool joint = c.source_vocabulary == 0;
  const Wire source_table = joint ? token_table(b, "embedding.token", c.vocabulary, source_rules)
                                  : token_table(b, "embedding.source", c.source_vocabulary, source_rules);
  const Wire table = joint ? source_table : token_table(b, "embedding.token", c.vocabulary, rules);
  {
    const Wire x = embed(b, source_table, b.input("source"), "source_", source_rules);
    const auto scope = b.graph().scope(b.sites()[0].scope);
    above.memory = b.through(below, x);
  }
  Wire x = embed(b, table, b.input("tokens"), "", rules);
  {
    const auto scope = b.graph().scope(b.sites()[1].scope);
    x = b.through(above, x);
  }
  b.classify(x, c.vocabulary, above, rules, c.tied ? table : Wire());
}

}  // namespace

FamilyRow decoder_family() {
  return {.name = "decoder",
          .habit = "reads one row from left to right",
          .data = "onward",
          .speech = Speech::goes_on,
          .check = check_says_tokens,
          .inputs = decoder_inputs,
          .output = token_output,
          .positions = [](const ModelConfig& c) { return c.time; },
          .sites = decoder_stack,
          .build = build_decoder,
          .start = token_variance};
}

FamilyRow encoder_family() {
  return {.name = "encoder",
          .habit = "reads a row all at once and would see each next token",
          .data = "whole",
          .check = check_encoder,
          .inputs = encoder_inputs,
          .output = token_output,
          .positions = [](const ModelConfig& c) { return c.time; },
          .sites = encoder_stack,
          .build = build_encoder,
          .start = token_variance};
}

FamilyRow encoder_decoder_family() {
  return {.name = "encoder_decoder",
          .habit = "reads one side and says the other",
          .data = "paired",
          .speech = Speech::answers,
          .check = check_says_tokens,
          .inputs = encoder_decoder_inputs,
          .output = token_output,
          .positions = [](const ModelConfig& c) { return c.time; },
          .sites = two_stacks,
          .build = build_encoder_decoder,
          .start = token_variance};
}

}  // namespace norma
