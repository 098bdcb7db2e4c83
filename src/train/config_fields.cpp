#include "train/config_fields.h"

#include "norma/data/source.h"
#include "norma/train/data.h"
#include "train/fields.h"

namespace norma {
namespace {

constexpr Word<Positions> kPositions[] = {{"learned", Positions::learned},
                                          {"sinusoidal", Positions::sinusoidal},
                                          {"rope", Positions::rope},
                                          {"none", Positions::none}};
constexpr Word<WeightInit> kWeights[] = {{"xavier_normal", WeightInit::xavier_normal},
                                         {"xavier_uniform", WeightInit::xavier_uniform}};
constexpr Word<GraphConvolution> kConvolutions[] = {{"gcn", GraphConvolution::gcn},
                                                    {"sage", GraphConvolution::sage},
                                                    {"gin", GraphConvolution::gin},
                                                    {"gat", GraphConvolution::gat}};
constexpr Word<Segmented> kReadouts[] = {{"sum", Segmented::sum}, {"mean", Segmented::mean}, {"max", Segmented::max}};
constexpr Word<WeightForm> kWeightForms[] = {{"plain", WeightForm::plain},
                                             {"standardised", WeightForm::standardised},
                                             {"weight_norm", WeightForm::weight_norm},
                                             {"spectral", WeightForm::spectral}};
constexpr Word<NormStatistics> kNormStatistics[] = {
    {"running", NormStatistics::running}, {"frozen", NormStatistics::frozen}, {"batch", NormStatistics::batch}};
constexpr Word<DType> kDTypes[] = {{"f32", DType::f32}, {"f64", DType::f64}};
constexpr Word<Recovery> kRecoveries[] = {{"none", Recovery::none},
                                          {"skip", Recovery::skip},
                                          {"lower_lr", Recovery::lower_lr},
                                          {"roll_back", Recovery::roll_back}};

constexpr Word<Leaks> kLeaks[] = {{"refuse", Leaks::refuse}, {"allow", Leaks::allow}};

constexpr Word<StreamWidth> kStreamWidths[] = {{"f32", StreamWidth::f32}, {"bf16", StreamWidth::bf16}};
constexpr Word<Keep> kKeeps[] = {{"all", Keep::all}, {"lean", Keep::lean}};

constexpr std::int64_t kMillion = 1'000'000;

void check_norm_name(const std::string& name) {
  if (!name.empty()) norm(name.ends_with("norm") ? std::string_view(name).substr(0, name.size() - 4) : name);
}

const std::string kFamilies = family_names();

void model_fields(FieldList& f, ModelConfig& m, const SchemeLibrary& schemes) {
  f.scheme("model.scheme", m.scheme, schemes, "a scheme of the catalogue, a file, or a formula for every sublayer");
  f.choice<Family>(
      "model.family", m.family, [](std::string_view name) { return Family(name); },
      [](Family family) { return std::string_view(family->name); }, kFamilies.c_str());
  f.whole("model.layers", m.layers, 1, kMillion, "of the only stack, or of the decoder");
  f.whole("model.encoder_layers", m.encoder_layers, 0, kMillion, "of the encoder of two stacks; 0: as many");
  f.whole("model.width", m.width, 1, kMillion, "of the residual stream");
  f.whole("model.heads", m.heads, 1, kMillion, "of attention");
  f.whole("model.kv_heads", m.kv_heads, 0, kMillion, "of keys and values; 0: as many as heads");
  f.whole("model.hidden", m.hidden, 0, kMillion, "of the feed-forward branch; 0: four times the width");
  f.whole("model.vocabulary", m.vocabulary, 0, 1 << 30, "0: that of the data");
  f.whole("model.source_vocabulary", m.source_vocabulary, 0, 1 << 30, "of the encoder's side; 0: the same table");
  f.whole("model.classes", m.classes, 0, kMillion, "of a classifier; 0: those of the data");
  f.whole("model.batch", m.batch, 1, kMillion, "sequences per batch");
  f.whole("model.time", m.time, 1, kMillion, "tokens per sequence");
  f.whole("model.source_time", m.source_time, 0, kMillion, "tokens of the encoder's side; 0: as many");
  f.choice<NormKind>(
      "model.norm", m.norm, [](std::string_view name) { return norm(name).kind; },
      [](NormKind kind) { return std::string_view(norm(kind).name); }, "what `norm` means in a formula");
  f.whole("model.norm_groups", m.norm_groups, 0, kMillion, "of GroupNorm; 0: as many as 32, channels and image allow");
  f.only_unless("0");
  f.word("model.norm_statistics", m.norm_statistics, kNormStatistics, "statistics of norms over the batch",
         "running, frozen or batch");
  f.only_unless("\"running\"");
  f.text("model.qk_norm", m.qk_norm, "a norm on queries and keys, such as \"rmsnorm\"; empty: none", check_norm_name);
  f.choice<Activation>(
      "model.activation", m.activation, parse_activation, [](Activation a) { return name_of(a); },
      "of the feed-forward branch");
  f.flag("model.gated", m.gated, "act(a) * b in the feed-forward branch (SwiGLU with silu)");
  f.word("model.positions", m.positions, kPositions, "kind of positions", "learned, sinusoidal, rope or none");
  f.flag("model.tied", m.tied, "the head is the token table");
  f.flag("model.biases", m.biases, "of linear layers");
  f.word("model.weights", m.weights, kWeights, "initial distribution", "xavier_normal or xavier_uniform");
  f.word("model.convolution", m.convolution, kConvolutions, "graph convolution", "gcn, sage, gin or gat");
  f.only_unless("\"gcn\"");
  f.word("model.readout", m.readout, kReadouts, "readout of the nodes of a graph", "sum, mean or max");
  f.only_unless("\"mean\"");
  f.word("model.weight_form", m.weight_form, kWeightForms, "form of weights",
         "plain, standardised, weight_norm or spectral");
  f.only_unless("\"plain\"");
  f.number("model.embedding_std", m.embedding_std, 0, 1e6, "of token and position tables");
  f.number("model.head_std", m.head_std, 0, 1e6, "of the head, unless it is tied");
  f.flag("model.scale_embedding", m.scale_embedding, "tokens times sqrt(width)");
  f.word("model.dtype", m.dtype, kDTypes, "dtype", "f32 or f64");
  f.word("model.stream", m.stream, kStreamWidths, "width of the residual stream",
         "f32, or bf16: with train.precision=bf16 the residual stream is bf16 too");
  f.only_unless("\"f32\"");
  f.table("model.sizes", m.sizes, "of this family alone, see docs/families.md", 1, 1e9);
  f.table("model.constants", m.constants, "instead of the scheme's own constant of this name: alpha = 2.0");
}

void data_fields(FieldList& f, DataConfig& d) {
  f.text("data.task", d.task, "what is learned, see docs/data.md; auto: by family and path",
         [](const std::string& name) {
           std::vector<std::string> known(task_names().begin(), task_names().end());
           known.emplace_back(kFamilyTask);
           if (std::find(known.begin(), known.end(), name) == known.end())
             fail("there is no task '{}'{}; expected {}", name, did_you_mean(name, known), fmt::join(known, ", "));
         });
  f.text("data.path", d.path, "of the training data");
  f.text("data.validation_path", d.validation_path, "empty: the last part of the training data");
  f.text("data.target_path", d.target_path, "translation: the second file");
  f.text("data.validation_target_path", d.validation_target_path, "translation: the second held-out file");
  f.number("data.validation_fraction", d.validation_fraction, 0, 0.9, "of the data, held out");
  f.whole("data.evaluation_batches", d.evaluation_batches, 0, kMillion, "at most so many");
  f.text("data.held_out", d.held_out, "all, or every other batch: even, odd", [](const std::string& name) {
    if (name != "all" && name != "even" && name != "odd") fail("{} was given; expected all, even or odd", name);
  });
  f.only_unless("\"all\"");
  f.text("data.order", d.order, "permuted or random");
  f.text("data.tokenizer", d.tokenizer, "bytes, characters, words, gpt2 or sentencepiece");
  f.text("data.tokenizer_path", d.tokenizer_path, "of its files");
  f.text("data.sentencepiece_model", d.sentencepiece_model, "unigram or bpe");
  f.whole("data.vocabulary", d.vocabulary, 0, 1 << 30, "largest vocabulary; 0: as it comes");
  f.text("data.layout", d.layout, "of a classification file");
  f.text("data.header", d.header, "whether a table has one: auto, yes or no");
  f.whole("data.text_column", d.text_column, -1, 10000, "from 0; -1: by layout");
  f.whole("data.second_text_column", d.second_text_column, -1, 10000, "from 0; -1: by layout");
  f.whole("data.label_column", d.label_column, -1, 10000, "from 0; -1: by layout");
  f.number("data.mask_fraction", d.mask_fraction, 0, 1, "masked tasks: share of tokens to predict");
  f.whole("data.depth", d.depth, 0, 64, "grammar, sentences: levels; 0: the default");
  f.whole("data.choices", d.choices, 0, 64, "grammar: productions of a symbol; 0: the default");
  f.whole("data.hops", d.hops, 0, 1024, "hops: pointers to follow; 0: its default");
  f.whole("data.symbols", d.symbols, 0, kMillion, "generated tasks: alphabet; 0: the default");
  f.table("data.settings", d.settings, "of this task alone, see docs/data.md");
}

void diffusion_fields(FieldList& f, DiffusionConfig& d) {
  f.choice<Predicted>(
      "diffusion.prediction", d.prediction, parse_prediction, [](Predicted p) { return name_of(p); },
      "what a denoiser answers: epsilon, x0 or v");
  f.only_unless("\"epsilon\"");
  f.choice<NoiseShape>(
      "diffusion.schedule", d.schedule, parse_noise_shape, [](NoiseShape s) { return name_of(s); },
      "of the noise: linear or cosine");
  f.only_unless("\"linear\"");
  f.whole("diffusion.timesteps", d.timesteps, 1, kMillion, "of the noise schedule");
  f.only_unless("1000");
  f.number("diffusion.drop", d.drop, 0, 0.99, "share of samples whose class is hidden in training, for guidance");
  f.only_unless("0.1");
  f.flag("diffusion.conditional", d.conditional, "whether a denoiser is told the class, where there are classes");
  f.only_unless("true");
}

void train_fields(FieldList& f, TrainConfig& t) {
  constexpr std::int64_t kLongest = 1'000'000'000'000;
  f.whole("train.steps", t.steps, 1, kLongest, "of the optimiser");
  f.number("train.lr", t.lr, 0, 1e6, "peak learning rate");
  f.choice<ScheduleShape>(
      "train.schedule", t.schedule.shape, schedule_shape, [](ScheduleShape shape) { return name_of(shape); },
      "constant, inverse_sqrt, cosine, linear, step, wsd or ramp");
  f.whole("train.warmup", t.schedule.warmup, 0, kLongest, "steps of linear rise");
  f.number("train.floor", t.schedule.floor, 0, 1, "where cosine, linear and wsd end, as a share of the peak");
  f.whole("train.step_every", t.schedule.step_every, 0, kLongest, "step: so often; 0: a third of the run, so twice");
  f.number("train.step_factor", t.schedule.step_factor, 0, 1, "step: times this");
  f.number("train.cooldown", t.schedule.cooldown, 0, 1, "wsd: share of the run that falls");
  f.choice<OptimiserName>(
      "train.optimiser", t.optimiser.name, optimiser_name, [](OptimiserName name) { return name_of(name); },
      "adamw, adam, radam, sgd or adagrad");
  f.number("train.beta1", t.optimiser.beta1, 0, 0.9999999, "adam: decay of the first moment; sgd: momentum");
  f.number("train.beta2", t.optimiser.beta2, 0, 0.9999999, "adam: decay of the second moment");
  f.number("train.eps", t.optimiser.eps, 0, 1, "adam, adagrad: added to the root of the second moment");
  f.number("train.weight_decay", t.optimiser.weight_decay, 0, 1e3,
           "share of a weight that goes, as decay says; 0: none");
  f.choice<Decay>(
      "train.decay", t.optimiser.decay, decay_kind, [](Decay decay) { return name_of(decay); },
      "decoupled (adam: l2), independent or l2");
  f.flag("train.decay_vectors", t.decay_vectors, "whether biases, norm gains and learned vectors decay");
  f.number("train.clip", t.clip, 0, 1e9, "norm of all gradients of a member; 0: none");
  f.whole("train.accumulate", t.accumulate, 1, kMillion, "batches per step");
  f.number("train.dropout", t.dropout, 0, 0.99, "after every branch");
  f.number("train.smoothing", t.smoothing, 0, 0.99, "of labels");
  f.number("train.ema", t.ema, 0, 0.9999999, "decay of a moving mean of the weights, to evaluate; 0: none");
  f.only_unless("0");
  f.whole("train.seed", t.seed, 0, kLongest, "of weights and dropout");
  f.whole("train.data_seed", t.data_seed, 0, kLongest, "of the order of the data");
  f.whole("train.log_every", t.log_every, 1, kLongest, "steps between records of metrics");
  f.whole("train.evaluate_every", t.evaluate_every, 0, kLongest, "steps; 0: only at the end");
  f.whole("train.checkpoint_every", t.checkpoint_every, 0, kLongest, "steps; 0: only at the end");
  f.whole("train.keep_checkpoints", t.keep_checkpoints, 1, kMillion, "how many");
  f.whole("train.recompute_every", t.recompute_every, 0, kMillion, "layers per recomputed segment; 0: keep all");
  f.word("train.keep", t.keep, kKeeps, "choice of activations to keep",
         "all activations, or lean: without what is cheap to compute again");
  f.only_unless("\"all\"");
  f.whole("train.threads", t.threads, 0, 4096, "0: all cores");
  f.choice<Device>(
      "train.device", t.device, parse_device, [](Device device) { return name_of(device); }, "auto, cpu or cuda");
  f.choice<Precision>(
      "train.precision", t.precision, parse_precision, [](Precision precision) { return name_of(precision); },
      "f32; on a GPU also tf32 (factors of 11 bits) or bf16 (f32 weights, sums and residual stream)");
  f.flag("train.probes", t.probes, "rms of streams, branches, gradients and updates by layer");
  f.flag("train.tensorboard", t.tensorboard, "write event files");
  f.word("train.leaks", t.leaks, kLeaks, "rule", "a model that sees later tokens: refuse or allow");
  f.only_unless("\"refuse\"");
}

void detect_fields(FieldList& f, DetectConfig& d) {
  f.whole("detect.window", d.window, 1, kMillion, "steps of the rolling median");
  f.number("detect.spike", d.spike, 0, 1e9, "nats above the median; 0: off");
  f.number("detect.rise", d.rise, 0, 1e9, "nats of the median above the first loss; 0: off");
  f.whole("detect.patience", d.patience, 1, 1'000'000'000, "steps that a spike may last");
  f.word("detect.recovery", d.recovery, kRecoveries, "recovery", "none, skip, lower_lr or roll_back");
  f.number("detect.lr_factor", d.lr_factor, 0, 1, "lower_lr, roll_back: on the learning rate");
  f.whole("detect.most_actions", d.most_actions, 0, kMillion, "then the member is frozen");
  f.whole("detect.snapshot_every", d.snapshot_every, 1, 1'000'000'000, "steps, for roll_back");
}

void member_fields(FieldList& f, MembersConfig& m) {
  constexpr std::int64_t kLongest = 1'000'000'000'000;
  f.wholes("members.seed", m.seed, 0, kLongest, "one value per member, as for all lists here");
  f.wholes("members.data_seed", m.data_seed, 0, kLongest, "instead of train.data_seed");
  f.numbers("members.lr", m.lr, 0, 1e6, "instead of train.lr");
  f.wholes("members.warmup", m.warmup, 0, kLongest, "instead of train.warmup");
  f.numbers("members.weight_decay", m.weight_decay, 0, 1e3, "instead of train.weight_decay");
  f.numbers("members.beta1", m.beta1, 0, 0.9999999, "instead of train.beta1");
  f.numbers("members.beta2", m.beta2, 0, 0.9999999, "instead of train.beta2");
  f.numbers("members.eps", m.eps, 0, 1, "instead of train.eps");
  f.numbers("members.clip", m.clip, 0, 1e9, "instead of train.clip");
  f.numbers("members.dropout", m.dropout, 0, 0.99, "instead of train.dropout");
}

void group_fields(FieldList& f, GroupRules& g) {
  f.table("groups.lr", g.lr, "times the learning rate of these parameters: embedding = 0.1", 0, 1e6);
  f.table("groups.decay", g.decay, "share of the weight decay for these parameters: norm = 1.0", 0, 1e6);
  f.table("groups.eps", g.eps, "times eps for these parameters: \"layers.0.*\" = 0.1", 0, 1e6);
}

}  // namespace

std::string_view name_of(Recovery recovery) { return word_for(std::span(kRecoveries), recovery); }

std::vector<ConfigField> config_fields(RunConfig& config, const SchemeLibrary& schemes) {
  FieldList f;
  model_fields(f, config.model, schemes);
  data_fields(f, config.data);
  diffusion_fields(f, config.data.diffusion);
  train_fields(f, config.train);
  detect_fields(f, config.detect);
  member_fields(f, config.members);
  group_fields(f, config.groups);
  return std::move(f.fields);
}

}  // namespace norma
