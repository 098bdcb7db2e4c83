// Configurations: every key survives the round trip, and mistakes are named.
#include "norma/train/config.h"

#include <gtest/gtest.h>

#include "check.h"
#include "norma/train/cohort.h"
#include "norma/train/data.h"

namespace norma {
namespace {

TEST(Config, DefaultsSurviveTheRoundTrip) {
  const std::string text = print_config(RunConfig());
  EXPECT_EQ(print_config(parse_config(text, "defaults")), text);
  EXPECT_NE(text.find("[model]\nscheme = \"pre\"\n"), std::string::npos) << text;
}

TEST(Config, EveryKindOfValueSurvivesTheRoundTrip) {
  RunConfig config = parse_config(R"toml(
[model]
scheme = "norm(x + 0.5*f(x))"
family = "encoder_decoder"
norm = "rms"
tied = true
[model.constants]
alpha = 2.5
[data]
path = "a \"quoted\" \\ path\n"
[train]
lr = 3e-4
steps = 1e4
schedule = "wsd"
optimiser = "radam"
decay = "independent"
[detect]
recovery = "roll_back"
[members]
lr = [1e-4, 3e-4, 1e-3]
seed = [1, 2, 3]
clip = 0.5
)toml",
                                  "test.toml");
  EXPECT_EQ(config.model.scheme, "norm(x + 0.5*f(x))");
  EXPECT_EQ(config.model.family, "encoder_decoder");
  EXPECT_EQ(config.model.norm, NormKind::rms);
  EXPECT_EQ(config.model.constants.at("alpha"), 2.5);
  EXPECT_EQ(config.data.path, "a \"quoted\" \\ path\n");
  EXPECT_EQ(config.train.steps, 10000);
  EXPECT_EQ(config.train.optimiser.decay, Decay::independent);
  EXPECT_EQ(config.detect.recovery, Recovery::roll_back);
  const std::string text = print_config(config);
  EXPECT_EQ(print_config(parse_config(text, "printed")), text);
}

TEST(Config, WithHelpItIsStillTheSameConfiguration) {
  const RunConfig config = parse_config("train.lr = 0.25", "test");
  const std::string help = print_config(config, true);
  EXPECT_EQ(print_config(parse_config(help, "help")), print_config(config));
  for (const ConfigKey& key : config_keys(config)) EXPECT_NE(key.help, "") << key.name;
  for (const char* table : {"# [model.constants] ", "# [groups.lr] ", "# [groups.decay] ", "# [groups.eps] "})
    EXPECT_NE(help.find(table), std::string::npos) << "an empty table is shown: " << table;
}

TEST(Config, OverridesTakeTomlOrBareText) {
  RunConfig config;
  override_config(config, "train.lr=3e-4");
  override_config(config, "model.scheme=x + f(norm(x))/sqrt(l)");
  override_config(config, "data.path=corpus.txt");
  override_config(config, "model.tied=true");
  override_config(config, "members.seed=[4, 5]");
  override_config(config, "model.constants.alpha=1.5");
  EXPECT_EQ(config.train.lr, 3e-4);
  EXPECT_EQ(config.model.scheme, "x + f(norm(x))/sqrt(l)");
  EXPECT_EQ(config.data.path, "corpus.txt");
  EXPECT_TRUE(config.model.tied);
  EXPECT_EQ(config.members.seed, (std::vector<std::int64_t>{4, 5}));
  EXPECT_EQ(config.model.constants.at("alpha"), 1.5);
}

TEST(Config, MembersDifferWhereListsSayIt) {
  const RunConfig config =
      parse_config("train.lr = 0.5\ntrain.warmup = 7\nmembers.lr = [1e-3, 1e-2]\nmembers.clip = 3", "test");
  const std::vector<TrainConfig> members = member_configs(config);
  ASSERT_EQ(members.size(), 2u);
  EXPECT_EQ(members[0].lr, 1e-3);
  EXPECT_EQ(members[1].lr, 1e-2);
  EXPECT_EQ(members[1].clip, 3);
  EXPECT_EQ(members[1].schedule.warmup, 7);
  EXPECT_EQ(members[0].schedule.steps, 1000);
  EXPECT_EQ(member_configs(RunConfig()).size(), 1u);
}

struct Mistake {
  const char* text;
  const char* message;
};

class Mistakes : public testing::TestWithParam<Mistake> {};

TEST_P(Mistakes, AreNamed) {
  EXPECT_EQ(test::error_of([] { parse_config(GetParam().text, "run.toml"); }), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    All, Mistakes,
    testing::Values(
        Mistake{"train.lrr = 1", "run.toml: there is no key 'train.lrr' (did you mean 'train.lr'?)"},
        Mistake{"data.batch = 4", "run.toml: there is no key 'data.batch' (did you mean 'model.batch'?)"},
        Mistake{"train = 1", "run.toml: there is no key 'train'"},
        Mistake{"train.lr = \"fast\"", "run.toml: train.lr: 'fast' was given; expected a number from 0 to 1000000"},
        Mistake{"train.lr = -1", "run.toml: train.lr: -1 was given; expected a number from 0 to 1000000"},
        Mistake{"train.lr = nan", "run.toml: train.lr: nan was given; expected a number from 0 to 1000000"},
        Mistake{"model.layers = 0", "run.toml: model.layers: 0 was given; expected a whole number from 1 to 1000000"},
        Mistake{"model.layers = 1.5",
                "run.toml: model.layers: 1.5 was given; expected a whole number from 1 to 1000000"},
        Mistake{"model.tied = 1", "run.toml: model.tied: 1 was given; expected true or false"},
        Mistake{"model.scheme = \"deepnrm\"",
                "run.toml: model.scheme: there is no scheme named 'deepnrm' (did you mean 'deepnorm'?)"},
        Mistake{"train.optimiser = \"adamm\"",
                "run.toml: train.optimiser: there is no optimiser 'adamm' (did you mean 'adamw'?); expected adamw, "
                "adam, radam, sgd, adagrad"},
        Mistake{
            "model.convolution = \"gcnn\"",
            "run.toml: model.convolution: there is no graph convolution 'gcnn' (did you mean 'gcn'?); expected gcn, "
            "sage, gin, gat"},
        Mistake{"members.lr = [1, 2]\nmembers.seed = [1, 2, 3]",
                "members.lr has 2 values but members.seed has 3; lists must be of one length"},
        Mistake{"[train\nlr = 1",
                "run.toml, line 1, column 7: Error while parsing table header: expected ']', saw "
                "'\\n'"}));

TEST(Config, OverridesThatSayNothingAreNamed) {
  RunConfig config;
  EXPECT_EQ(test::error_of([&] { override_config(config, "train.lr"); }),
            "'train.lr' does not set anything; expected key=value, as in train.lr=3e-4");
  EXPECT_EQ(test::error_of([&] { override_config(config, "trian.lr=1"); }),
            "--trian.lr: there is no key 'trian.lr' (did you mean 'train.lr'?)");
  EXPECT_EQ(test::error_of([&] { override_config(config, "train.lr=fast"); }),
            "--train.lr: 'fast' was given; expected a number from 0 to 1000000");
}

// Who asks for the family alone has asked for no batch.
TEST(Config, AFamilyWithoutAChoiceOfBatchHasItsOwn) {
  RunConfig config;
  override_config(config, "model.family=gcn");
  EXPECT_EQ(config.model.batch, 1);
  EXPECT_EQ(parse_config("[model]\nfamily = \"gcn\"", "test").model.batch, 1);
  EXPECT_EQ(parse_config(print_config(config), "test").model.batch, 1);
  override_config(config, "model.batch=1");
  EXPECT_NE(test::error_of([&] { override_config(config, "model.batch=2"); }).find("its batch is 1"),
            std::string::npos);
  override_config(config, "model.batch=1");
  override_config(config, "model.family=graphs");
  EXPECT_EQ(config.model.batch, ModelConfig().batch);
  RunConfig by_hand;
  by_hand.model.family = "gcn";
  EXPECT_EQ(parse_config(print_config(by_hand), "test").model.batch, 1) << "the usual batch is nobody's wish";
  by_hand.model.batch = 7;
  const auto source = open_data(by_hand);
  EXPECT_NE(test::error_of([&] { resolve_config(by_hand, *source); }).find("model.batch is 7"), std::string::npos);
}

TEST(Config, FilesThatAreNotThereAreNamed) {
  EXPECT_EQ(test::error_of([] { read_config("/nowhere/run.toml"); }), "there is no file '/nowhere/run.toml'");
  EXPECT_EQ(test::error_of([] { read_config("/tmp"); }), "'/tmp' is a folder; expected a TOML file");
}

}  // namespace
}  // namespace norma
