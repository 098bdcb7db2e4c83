// What norma check takes from files of others, and what it refuses.
#include "norma/train/check.h"

#include <gtest/gtest.h>

#include <cmath>

#include "error_of.h"
#include "norma/store/safetensors.h"
#include "norma/store/safetensors_writer.h"
#include "norma/train/cohort.h"
#include "norma/train/data.h"
#include "temporary_folder.h"

namespace norma {
namespace {

using Ids = std::vector<std::int32_t>;

constexpr std::int64_t kBatch = 2, kTime = 4;

CheckResult check_ids(const test::TemporaryFolder& folder, const std::string& tokens) {
  CheckRequest request{.config = parse_config("model.layers = 1\nmodel.width = 8\nmodel.heads = 2\n"
                                              "model.vocabulary = 17\ntrain.threads = 1",
                                              "test"),
                       .weights = {},
                       .tokens = tokens,
                       .out = folder / "out.safetensors"};
  return check_model(request);
}

std::string error_for(const Ids& targets) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "ids.safetensors";
  const Ids tokens(static_cast<std::size_t>(kBatch * kTime), 3);
  write_safetensors(path, std::vector<TensorData>{
                              {{"tokens", ElementType::i32, {kBatch, kTime}}, std::as_bytes(std::span(tokens))},
                              {{"targets", ElementType::i32, {kBatch, kTime}}, std::as_bytes(std::span(targets))}});
  const std::string error = test::error_of([&] { check_ids(folder, path); });
  EXPECT_EQ(std::filesystem::exists(folder / "out.safetensors"), error.empty()) << error;
  return error;
}

TEST(Check, RefusesTargetsOutsideTheVocabulary) {
  EXPECT_EQ(error_for({0, 16, -100, 1, 2, 3, 4, 5}), "");
  for (const std::int32_t bad : {17, 2'000'000'000, -7, -1})
    EXPECT_NE(error_for({0, 1, 2, 3, 4, 5, bad, 6}).find(fmt::format("target {} at row 1, position 2 ", bad)),
              std::string::npos)
        << bad;
}

TEST(Check, RefusesABatchThatAsksForNothing) {
  EXPECT_NE(error_for(Ids(8, -100)).find("all 8 of its targets are -100"), std::string::npos);
}

// What a run would start from.
TEST(Check, WithoutWeightsShowsWhatTheSchemeMeasures) {
  const test::TemporaryFolder folder;
  const std::string out = folder / "out.safetensors";
  CheckRequest request{.config = parse_config("model.scheme = \"admin\"\nmodel.layers = 2\nmodel.width = 8\n"
                                              "model.heads = 2\nmodel.batch = 4\nmodel.time = 8\ntrain.threads = 1",
                                              "test"),
                       .weights = {},
                       .tokens = {},
                       .out = out};
  check_model(request);
  const std::vector<float> first = SafetensorsFile(out).to_f32("weight.layers.0.attn.omega");
  EXPECT_EQ(first[0], 1) << "the first is init";
  Cohort cohort(request.config, open_data(request.config));
  for (const char* name : {"layers.0.ffn.omega", "layers.1.attn.omega", "layers.1.ffn.omega"}) {
    const float measured = SafetensorsFile(out).to_f32(std::string("weight.") + name)[0];
    EXPECT_NE(measured, 1) << name;
    EXPECT_FLOAT_EQ(measured, static_cast<float>(cohort.session().number(name, 0))) << name << ", as a run starts";
  }
}

// Seeds of members are seeds of a check as well; it has one model, so they must agree.
TEST(Check, HasTheSeedOfItsMembers) {
  const test::TemporaryFolder folder;
  const auto weights = [&](const std::string& keys) {
    CheckRequest request{.config = parse_config("model.layers = 1\nmodel.width = 8\nmodel.heads = 2\nmodel.batch = 2\n"
                                                "model.time = 8\ntrain.threads = 1\n" +
                                                    keys,
                                                "test"),
                         .weights = {},
                         .tokens = {},
                         .out = folder / "out.safetensors"};
    check_model(request);
    const SafetensorsFile file(request.out);
    std::vector<float> all = file.to_f32("weight.embedding.token"), logits = file.to_f32("logits");
    all.insert(all.end(), logits.begin(), logits.end());
    return all;
  };
  const std::vector<float> third = weights("train.seed = 3\ntrain.data_seed = 3");
  EXPECT_NE(third, weights(""));
  EXPECT_EQ(third, weights("members.seed = [3]\nmembers.data_seed = [3]\nmembers.lr = [1, 2]"));
  EXPECT_NE(test::error_of([&] { weights("members.seed = [3, 4]"); }).find("norma check writes one model"),
            std::string::npos);
}

TEST(Check, ReadsTensorsThatBeginAtAnyByte) {
  const test::TemporaryFolder folder;
  const std::vector<std::int64_t> ids = {0, 1, 2, 3, 4, 5, 6, 7};
  const std::string_view data(reinterpret_cast<const char*>(ids.data()), sizeof(std::int64_t) * ids.size());
  std::vector<double> losses;
  for (std::size_t padding = 0; padding < 8; ++padding) {
    std::string header = R"({"targets":{"dtype":"I64","shape":[2,4],"data_offsets":[0,64]},)"
                         R"("tokens":{"dtype":"I64","shape":[2,4],"data_offsets":[64,128]}})";
    header.resize(header.size() + padding, ' ');
    const std::uint64_t size = header.size();
    const std::string length(reinterpret_cast<const char*>(&size), sizeof(size));
    const std::string path = folder.write("ids.safetensors", length + header + std::string(data) + std::string(data));
    losses.push_back(check_ids(folder, path).loss);
    EXPECT_TRUE(std::isfinite(losses.back()));
    EXPECT_EQ(losses.back(), losses.front());
  }
}

}  // namespace
}  // namespace norma
