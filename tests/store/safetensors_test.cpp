// What is written is read back, by us and by Python; what is damaged is refused.
#include "norma/store/safetensors.h"

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "norma/store/safetensors_writer.h"
#include "places.h"
#include "store/store_check.h"

namespace norma {
namespace {

using test::error_of;
using test::read_file;
using test::TemporaryFolder;
using test::write_file;

const std::vector<float> kWeights = {0.5f, -1.25f, 0x1p-126f, 1e30f, 0.0f, 7.0f};
const std::vector<double> kMoments = {0.1, -2.5e-300};
const std::vector<std::int32_t> kTokens = {-7, 2'000'000'000, 0};
const std::vector<std::int64_t> kStep = {1'234'567'890'123};
const std::vector<std::uint8_t> kFlags = {1, 0, 255};

void write_sample(const test::fs::path& path, SafetensorsOptions options = {}) {
  const std::vector<BFloat16> half_precision = {BFloat16(1.5f), BFloat16(-2.0f)};
  const std::vector<TensorData> tensors = {tensor_data<std::uint8_t>("flags", {3}, kFlags),
                                           tensor_data<float>("w.0", {2, 3}, kWeights),
                                           tensor_data<double>("m \"quoted\"", {2, 1}, kMoments),
                                           tensor_data<std::int32_t>("tokens", {1, 3, 1}, kTokens),
                                           tensor_data<BFloat16>("bf", {2}, half_precision),
                                           tensor_data<std::int64_t>("step", {}, kStep),
                                           tensor_data<float>("nothing", {0, 4}, {})};
  write_safetensors(path, tensors, {{"format", "norma"}, {"text", "a \"b\" \n ü"}}, options);
}

template <typename T>
std::vector<T> values(const SafetensorsFile& file, std::string_view name) {
  const std::span<const T> view = file.view<T>(name);
  return {view.begin(), view.end()};
}

// A file with this header, padded by nothing, and `data` behind it.
std::string with_header(const std::string& json, const std::string& data) {
  const std::uint64_t length = json.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + json + data;
}

TEST(Safetensors, RoundTrip) {
  const TemporaryFolder directory;
  for (const TensorOrder order : {TensorOrder::by_size_and_name, TensorOrder::as_given}) {
    write_sample(directory / "a", {.order = order});
    const SafetensorsFile file(directory / "a");
    EXPECT_EQ(file.tensors().size(), 7u);
    EXPECT_EQ(file.to_f32("w.0"), kWeights);
    EXPECT_EQ(file.to_f32("bf"), (std::vector<float>{1.5f, -2.0f}));
    EXPECT_EQ(file.info("tokens").shape, (std::vector<std::int64_t>{1, 3, 1}));
    EXPECT_EQ(file.info("tokens").str(), "I32[1, 3, 1]");
    EXPECT_EQ(file.info("nothing").elements(), 0u);
    EXPECT_EQ(file.info("step").elements(), 1u);
    EXPECT_EQ(file.metadata().at("text"), "a \"b\" \n ü");
    EXPECT_EQ(values<std::uint8_t>(file, "flags"), kFlags);
    file.verify_checksum();
  }
  write_sample(directory / "a");
  const SafetensorsFile file(directory / "a");  // sorted: every view is aligned
  EXPECT_EQ(values<float>(file, "w.0"), kWeights);
  EXPECT_EQ(values<double>(file, "m \"quoted\""), kMoments);
  EXPECT_EQ(values<std::int32_t>(file, "tokens"), kTokens);
  EXPECT_EQ(values<std::int64_t>(file, "step"), kStep);
  EXPECT_TRUE(file.view<float>("nothing").empty());
  EXPECT_EQ(file.tensors()[0].name, "m \"quoted\"");
  const std::string raw = read_file(directory / "a");
  std::uint64_t length = 0;
  std::memcpy(&length, raw.data(), 8);
  EXPECT_EQ((8 + length) % 64, 0u);
}

TEST(Safetensors, TheOrderIsTheOneAskedFor) {
  const TemporaryFolder directory;
  write_sample(directory / "a", {.order = TensorOrder::as_given});
  const SafetensorsFile file(directory / "a");
  EXPECT_EQ(file.tensors()[0].name, "flags");
  const std::string message = error_of([&] { file.view<float>("w.0"); });
  EXPECT_NE(message.find("not a multiple of 4"), std::string::npos) << message;
}

TEST(Safetensors, NothingAtAllIsAFile) {
  const TemporaryFolder directory;
  write_safetensors(directory / "a", {}, {}, {.checksum = Checksum::none});
  EXPECT_TRUE(SafetensorsFile(directory / "a").tensors().empty());
  EXPECT_FALSE(SafetensorsFile(directory / "a").has_checksum());
  EXPECT_NE(error_of([&] { SafetensorsFile(directory / "a").verify_checksum(); }).find("no checksum"),
            std::string::npos);
  write_safetensors(directory / "b", {});
  SafetensorsFile(directory / "b").verify_checksum();
}

TEST(Safetensors, TensorsCanComeInPieces) {
  const TemporaryFolder directory;
  const auto bytes = std::as_bytes(std::span(kWeights));
  {
    SafetensorsWriter writer(directory / "a", {{"w", ElementType::f32, {6}}, {"v", ElementType::f32, {6}}});
    EXPECT_NE(error_of([&] { writer.write("w", bytes); }).find("the turn of 'v'"), std::string::npos);
    writer.write("v", bytes.first(10));
    EXPECT_NE(error_of([&] { writer.write("v", bytes); }).find("lacks 14"), std::string::npos);
    writer.write("v", bytes.subspan(10));
    EXPECT_NE(error_of([&] { writer.commit(); }).find("'w' lacks 24 bytes"), std::string::npos);
    EXPECT_FALSE(test::fs::exists(directory / "a"));
    SafetensorsWriter moved(std::move(writer));
    moved.write("w", bytes);
    EXPECT_NE(error_of([&] { moved.write("w", bytes); }).find("every tensor is complete"), std::string::npos);
    moved.commit();
  }
  const SafetensorsFile file(directory / "a");
  file.verify_checksum();
  EXPECT_EQ(values<float>(file, "w"), kWeights);
  EXPECT_EQ(values<float>(file, "v"), kWeights);
}

TEST(Safetensors, HalfPrecisionIsReadExactly) {
  const TemporaryFolder directory;
  std::vector<std::uint16_t> all(1 << 16);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  write_safetensors(directory / "a",
                    std::vector<TensorData>{{{"h", ElementType::f16, {1 << 16}}, std::as_bytes(std::span(all))}});
  const std::vector<float> read = SafetensorsFile(directory / "a").to_f32("h");
  for (int bits = 0; bits < 1 << 16; ++bits) {
    const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    const double sign = (bits & 0x8000) != 0 ? -1 : 1;
    const float got = read[static_cast<std::size_t>(bits)];
    ASSERT_EQ(std::signbit(got), sign < 0) << bits;
    if (exponent == 31 && mantissa != 0) {
      ASSERT_TRUE(std::isnan(got)) << bits;
    } else if (exponent == 31) {
      ASSERT_EQ(got, sign * std::numeric_limits<double>::infinity()) << bits;
    } else {
      const double expected = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
      ASSERT_EQ(static_cast<double>(got), sign * expected) << bits;
    }
  }
}

TEST(Safetensors, AWrongNameOrTypeIsExplained) {
  const TemporaryFolder directory;
  write_sample(directory / "a");
  const SafetensorsFile file(directory / "a");
  EXPECT_NE(error_of([&] { file.bytes("token"); }).find("did you mean 'tokens'?"), std::string::npos);
  EXPECT_NE(error_of([&] { file.view<double>("w.0"); }).find("is F32[2, 3]; it was read as F64"), std::string::npos);
  EXPECT_NE(error_of([&] { file.to_f32("tokens"); }).find("expected F16, BF16, F32 or F64"), std::string::npos);
  EXPECT_NE(error_of([&] { SafetensorsFile(directory / "b"); }).find("No such file"), std::string::npos);
  EXPECT_NE(error_of([&] { SafetensorsFile(directory.path()); }).find("a folder"), std::string::npos);
}

TEST(Safetensors, TheWriterRefusesWhatNobodyCouldRead) {
  const TemporaryFolder directory;
  const auto write = [&](std::vector<TensorEntry> entries, Metadata metadata = {}) {
    return error_of([&] { SafetensorsWriter(directory / "a", std::move(entries), std::move(metadata)); });
  };
  EXPECT_NE(write({{"w", ElementType::f32, {0}}, {"w", ElementType::u8, {0}}}).find("two tensors"), std::string::npos);
  EXPECT_NE(write({{"w", ElementType::f32, {-1}}}).find("dimension -1"), std::string::npos);
  EXPECT_NE(write({{"w", ElementType::f32, {INT64_MAX, 2}}}).find("larger than any file"), std::string::npos);
  EXPECT_NE(write({{"__metadata__", ElementType::f32, {}}}).find("cannot be the name"), std::string::npos);
  EXPECT_NE(write({{"\xff", ElementType::f32, {}}}).find("not UTF-8"), std::string::npos);
  EXPECT_NE(write({}, {{"k", "\xc3"}}).find("not UTF-8"), std::string::npos);
  const std::vector<TensorData> short_data = {{{"w", ElementType::f32, {2}}, std::as_bytes(std::span(kFlags))}};
  EXPECT_NE(error_of([&] { write_safetensors(directory / "a", short_data); }).find("needs 8 bytes; 3 were given"),
            std::string::npos);
  EXPECT_EQ(test::files_in(directory.path()), 0);
}

TEST(Safetensors, EveryMistakeInAHeaderIsNamed) {
  const TemporaryFolder directory;
  const auto entry = [](const std::string& inside) { return "{\"w\":{" + inside + "}}"; };
  const std::string good = R"("dtype":"F32","shape":[2],"data_offsets":[0,8])";
  const std::string data(8, 'x');
  write_file(directory / "a", with_header(entry(good), data));
  EXPECT_EQ(SafetensorsFile(directory / "a").info("w").elements(), 2u);
  struct Case {
    std::string file, message;
  };
  const std::string huge = "9223372036854775807";
  const std::vector<Case> cases = {
      {"", "it has 0 bytes"},
      {"1234567", "it has 7 bytes"},
      {std::string(8, '\xff'), "at most 100000000"},
      {std::string("\xe8\x03\0\0\0\0\0\0{}", 10), "would have 1000 bytes, the file has only 10"},
      {with_header("", ""), "does not begin with '{'"},
      {with_header(" {}", ""), "does not begin with '{'"},
      {with_header("{} x", ""), "not JSON at its byte"},
      {with_header("{", ""), "not JSON"},
      {with_header(std::string(1000, '{'), ""), "not JSON"},
      {with_header("{\"\xff\":{}}", ""), "not JSON"},
      {with_header("{\"w\":" + std::string(1000, '['), ""), "the entry 'w' is an array"},
      {with_header("{\"w\":3}", ""), "the entry 'w' is a number"},
      {with_header("{\"w\":null}", ""), "the entry 'w' is null"},
      {with_header("{\"w\":{}}", ""), "has no field 'dtype'"},
      {with_header(entry(good) + "", data + "x"), "the tensors end at byte 8 of the data, the file at 9"},
      {with_header(entry(good), "x"), "of which the file holds 1"},
      {with_header("{\"w\":{" + good + "},\"w\":{" + good + "}}", data), "the name 'w' occurs twice"},
      {with_header("{\"w\":{" + good + "},\"v\":{" + good + "}}", data), "the tensor before it ends at 8"},
      {with_header(entry(R"("dtype":"F32","shape":[1],"data_offsets":[4,8])"), data), "begins at byte 4"},
      {with_header(entry(R"("dtype":"F32","shape":[3],"data_offsets":[0,8])"), data), "needs 12 bytes"},
      {with_header(entry(R"("dtype":"F32","shape":[2],"data_offsets":[8,0])"), data), "begins at byte 8 and ends at 0"},
      {with_header(entry(R"("dtype":"F32","shape":[2],"data_offsets":[0,8,8])"), data), "3 data offsets"},
      {with_header(entry(R"("dtype":"F32","shape":[2],"data_offsets":[0])"), data), "1 data offsets"},
      {with_header(entry(R"("dtype":"F31","shape":[2],"data_offsets":[0,8])"), data), "unknown element type 'F31'"},
      {with_header(entry(R"("dtype":"F32","shape":[-2],"data_offsets":[0,8])"), data), "negative number -2"},
      {with_header(entry(R"("dtype":"F32","shape":[2.0],"data_offsets":[0,8])"), data), "the number 2.0"},
      {with_header(entry(R"("dtype":"F32","shape":[true],"data_offsets":[0,8])"), data), "is a boolean"},
      {with_header(entry(R"("dtype":"F32","shape":[[2]],"data_offsets":[0,8])"), data), "is an array"},
      {with_header(entry(R"("dtype":"F32","shape":[{}],"data_offsets":[0,8])"), data), "holds an object"},
      {with_header(entry(R"("dtype":"F32","shape":"2","data_offsets":[0,8])"), data),
       "'shape' of tensor 'w' is a string"},
      {with_header(entry(good + R"(,"shape":[2])"), data), "two fields 'shape'"},
      {with_header(entry(good + R"(,"dtyp":"F32")"), data), "unknown field 'dtyp' (did you mean 'dtype'?)"},
      {with_header(entry(R"("dtype":"F32","shape":[)" + huge + "," + huge + R"(],"data_offsets":[0,8])"), data),
       "larger than any file"},
      {with_header(entry(R"("dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,8])"), data), "is too large"},
      {with_header(entry(R"("dtype":"F32","shape":[99999999999999999999],"data_offsets":[0,8])"), data),
       "the number 9999"},
      {with_header(R"({"__metadata__":{"a":1}})", ""), "the value of 'a' in the metadata is a number"},
      {with_header(R"({"__metadata__":{"a":"1","a":"2"}})", ""), "the metadata hold 'a' twice"},
      {with_header(R"({"__metadata__":[]})", ""), "is an array"},
  };
  for (const Case& c : cases) {
    write_file(directory / "a", c.file);
    const std::string message = error_of([&] { SafetensorsFile file(directory / "a"); });
    EXPECT_NE(message.find(c.message), std::string::npos) << "expected: " << c.message << "\ngot: " << message;
    EXPECT_NE(message.find((directory / "a")), std::string::npos) << message;
  }
}

// Reads all there is. True when the file was accepted.
bool read_everything(const test::fs::path& path) {
  try {
    const SafetensorsFile file(path);
    unsigned sum = 0;
    for (const TensorInfo& tensor : file.tensors()) {
      for (const std::byte byte : file.bytes(tensor.name)) sum += static_cast<unsigned>(byte);
      if (tensor.type == ElementType::f32) sum += static_cast<unsigned>(file.to_f32(tensor.name).size());
    }
    volatile unsigned used = sum;
    static_cast<void>(used);
    file.verify_checksum();
    return true;
  } catch (const Error&) {
    return false;
  }
}

TEST(Safetensors, EveryTruncationIsRefused) {
  const TemporaryFolder directory;
  write_sample(directory / "a");
  const std::string whole = read_file(directory / "a");
  ASSERT_TRUE(read_everything(directory / "a"));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write_file(directory / "b", whole.substr(0, size));
    ASSERT_NE(error_of([&] { SafetensorsFile file(directory / "b"); }), "") << size << " of " << whole.size();
  }
}

TEST(Safetensors, EveryFlippedBitIsNoticed) {
  const TemporaryFolder directory;
  write_sample(directory / "a");
  const std::string whole = read_file(directory / "a");
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    write_file(directory / "b", damaged);
    ASSERT_FALSE(read_everything(directory / "b")) << "bit " << bit % 8 << " of byte " << bit / 8;
  }
}

TEST(Safetensors, RandomDamageNeverCrashes) {
  const TemporaryFolder directory;
  write_sample(directory / "a", {.checksum = Checksum::none});
  const std::string whole = read_file(directory / "a");
  std::uint64_t length = 0;
  std::memcpy(&length, whole.data(), 8);
  std::mt19937 random(7);
  const std::string alphabet = "{}[]\",:0123456789-.eE \\u";
  int accepted = 0;
  for (int round = 0; round < 6000; ++round) {
    std::string damaged = whole;
    const int count = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < count; ++i) {
      // Mostly the header, often with a character that means something there.
      const std::size_t limit = random() % 8 == 0 ? damaged.size() : std::min<std::size_t>(damaged.size(), 8 + length);
      const std::size_t at = random() % limit;
      const char byte = random() % 2 == 0 ? alphabet[random() % alphabet.size()] : static_cast<char>(random());
      switch (random() % 3) {
        case 0: damaged[at] = byte; break;
        case 1: damaged.insert(at, 1, byte); break;
        default: damaged.erase(at, 1 + random() % 5);
      }
    }
    if (round % 2 == 0) {  // a header length that fits, so that the damage inside is reached
      const std::uint64_t fitting = length + damaged.size() - whole.size();
      std::memcpy(damaged.data(), &fitting, std::min<std::size_t>(8, damaged.size()));
    }
    write_file(directory / "b", damaged);
    try {
      const SafetensorsFile file(directory / "b");
      for (const TensorInfo& tensor : file.tensors()) {
        const auto bytes = file.bytes(tensor.name);
        ASSERT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()).size(), bytes.size());
      }
      ++accepted;
    } catch (const Error&) {
    }
  }
  EXPECT_GT(accepted, 50) << "the damage never gets past the first check";
  EXPECT_LT(accepted, 5000);
}

TEST(Safetensors, PythonReadsWhatWeWrite) {
  const TemporaryFolder directory;
  write_sample(directory / "a");
  const test::ScriptResult result = test::run_script("read_safetensors.py", directory / "a");
  if (result.exit_status == test::kSkipped) GTEST_SKIP() << result.output;
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_EQ(result.output,
            "m \"quoted\" F64 [2, 1] 0.1 -2.5e-300\n"
            "step I64 [] 1234567890123\n"
            "nothing F32 [0, 4]\n"
            "tokens I32 [1, 3, 1] -7 2000000000 0\n"
            "w.0 F32 [2, 3] 0.5 -1.25 1.1754943508222875e-38 1.0000000150474662e+30 0.0 7.0\n"
            "bf BF16 [2] 1.5 -2.0\n"
            "flags U8 [3] 1 0 255\n"
            "format = norma\n"
            "text = a \"b\" \\n ü\n"
            "checksum agrees\n");
}

TEST(Safetensors, ACheckpointOfSomeoneElseIsRead) {
  const char* const given = std::getenv("NORMA_DATA");
  const test::fs::path data =
      given != nullptr ? test::fs::path(given) : test::fs::path(test::kSourceFolder) / "../shared/data";
  const test::fs::path path = data / "ckpt-stories260k/stories260K.safetensors";
  if (!test::fs::exists(path)) GTEST_SKIP() << "there is no " << path;
  const SafetensorsFile file(path);
  EXPECT_EQ(file.metadata().at("format"), "pt");
  EXPECT_EQ(file.info("model.embed_tokens.weight").str(), "F32[512, 64]");
  EXPECT_EQ(file.info("model.layers.0.self_attn.k_proj.weight").str(), "F32[32, 64]");
  std::uint64_t elements = 0;
  for (const TensorInfo& tensor : file.tensors()) {
    for (const float value : file.to_f32(tensor.name)) ASSERT_TRUE(std::isfinite(value)) << tensor.name;
    elements += tensor.elements();
  }
  EXPECT_EQ(elements, 260032u);
  EXPECT_NE(error_of([&] { file.verify_checksum(); }).find("carries no checksum"), std::string::npos);
}

}  // namespace
}  // namespace norma
