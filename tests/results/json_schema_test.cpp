// The validator itself: every rule that it knows can be broken, and a rule that it does not know is not passed over.
#include "results/json_schema.h"

#include <gtest/gtest.h>

namespace norma::test {
namespace {

using nlohmann::json;

std::string first_problem(const char* schema, const char* value) {
  const auto problems = JsonSchema(json::parse(schema)).problems(json::parse(value));
  return problems.empty() ? "" : problems.front();
}

TEST(JsonSchema, EveryRuleCanBeKeptAndBroken) {
  struct Case {
    const char *schema, *kept, *broken, *problem;
  };
  const Case cases[] = {
      {R"({"type": "string"})", R"("a")", "1", "it is 1; expected \"string\""},
      {R"({"type": "integer"})", "3", "3.5", "it is 3.5; expected \"integer\""},
      {R"({"type": "number"})", "3", R"("nan")", "it is \"nan\"; expected \"number\""},
      {R"({"type": ["number", "null"]})", "null", "false", "it is false; expected [\"number\",\"null\"]"},
      {R"({"enum": ["a", "b"]})", R"("b")", R"("c")", "it is \"c\"; expected one of [\"a\",\"b\"]"},
      {R"({"const": "lr"})", R"("lr")", R"("x")", "it is \"x\"; expected \"lr\""},
      {R"({"minimum": 0})", "0", "-1", "it is -1; expected at least 0"},
      {R"({"minItems": 1})", "[1]", "[]", "it is []; expected more items"},
      {R"({"items": {"type": "number"}})", "[1, 2.5]", R"([1, "a"])", "[1] is \"a\"; expected \"number\""},
      {R"({"properties": {"a": {"type": "null"}}})", R"({"b": 1})", R"({"a": 1})", "a is 1; expected \"null\""},
      {R"({"required": ["a"]})", R"({"a": 1})", "{}", "it has no \"a\""},
      {R"({"properties": {"a": {}}, "additionalProperties": false})", R"({"a": 1})", R"({"b": 1})",
       "b is not in the schema"},
      {R"({"additionalProperties": {"type": "number"}})", R"({"b": 1})", R"({"b": {}})",
       "b is {}; expected \"number\""},
      {R"({"anyOf": [{"type": "number"}, {"const": "nan"}]})", R"("nan")", "null", "it is null; expected \"number\""},
      {R"({"$ref": "#/$defs/t", "$defs": {"t": {"type": "null"}}})", "null", "1", "it is 1; expected \"null\""},
      {R"({"properties": {"a": {"items": {"required": ["x"]}}}})", R"({"a": [{"x": 1}]})", R"({"a": [{"x": 1}, {}]})",
       "a[1] has no \"x\""}};
  for (const Case& one : cases) {
    EXPECT_EQ(first_problem(one.schema, one.kept), "") << one.schema;
    EXPECT_EQ(first_problem(one.schema, one.broken), one.problem) << one.schema;
  }
}

TEST(JsonSchema, ARuleThatIsNotUnderstoodIsAnError) {
  EXPECT_THROW(first_problem(R"({"maximum": 3})", "1"), std::logic_error);
  EXPECT_THROW(first_problem(R"({"propertis": {}})", "{}"), std::logic_error);
  EXPECT_THROW(first_problem(R"({"$ref": "other.json"})", "{}"), std::logic_error);
}

TEST(JsonSchema, CountsWhatItHasSeen) {
  const JsonSchema schema(json::parse(
      R"({"$ref": "#/$defs/t", "$defs": {"t": {"properties": {"a": {"properties": {"b": {}}}, "c": {}}}}})"));
  EXPECT_EQ(schema.known(), (std::set<std::string>{"t.a", "t.a.b", "t.c"}));
  EXPECT_TRUE(schema.problems(json::parse(R"({"a": {"b": 1}})")).empty());
  EXPECT_EQ(schema.shown(), (std::set<std::string>{"t.a", "t.a.b"}));
}

}  // namespace
}  // namespace norma::test
