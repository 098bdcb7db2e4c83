// How fields of a configuration are declared: each knows its key, how it is read and checked, and how it is written.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "norma/core/error.h"
#include "norma/core/words.h"
#include "train/config_fields.h"
#include "train/toml_input.h"

namespace norma {

std::string given(const toml::node& node);  // what the user wrote
std::string number_text(double value);
double read_number(const toml::node& node, double low, double high);
std::int64_t read_whole(const toml::node& node, std::int64_t low, std::int64_t high);

class FieldList {
 public:
  void whole(const char* key, std::int64_t& value, std::int64_t low, std::int64_t high, const char* help) {
    add(
        key, help, [=, &value](const toml::node& node) { value = read_whole(node, low, high); },
        [&value] { return std::to_string(value); });
  }
  void number(const char* key, double& value, double low, double high, const char* help) {
    add(
        key, help, [=, &value](const toml::node& node) { value = read_number(node, low, high); },
        [&value] { return number_text(value); });
  }
  void flag(const char* key, bool& value, const char* help) {
    add(
        key, help,
        [&value](const toml::node& node) {
          if (!node.is_boolean()) fail("{} was given; expected true or false", given(node));
          value = *node.value<bool>();
        },
        [&value] { return std::string(value ? "true" : "false"); });
  }
  void text(const char* key, std::string& value, const char* help, std::function<void(const std::string&)> check = {}) {
    add(
        key, help,
        [&value, check](const toml::node& node) {
          if (!node.is_string()) fail("{} was given; expected text", given(node));
          const std::string word = *node.value<std::string>();
          if (check) check(word);
          value = word;
        },
        [&value] { return toml_string(value); });
  }
  void scheme(const char* key, SchemeChoice& value, const SchemeLibrary& schemes, const char* help) {
    add(
        key, help,
        [&value, schemes](const toml::node& node) {
          if (!node.is_string()) fail("{} was given; expected text", given(node));
          value = schemes.find(*node.value<std::string>());
        },
        [&value] { return toml_string(value.asked()); });
  }
  template <typename Choice>
  void choice(const char* key, Choice& value, std::function<Choice(std::string_view)> read,
              std::function<std::string_view(Choice)> write, const char* help) {
    add(
        key, help,
        [&value, read](const toml::node& node) {
          if (!node.is_string()) fail("{} was given; expected a word", given(node));
          value = read(*node.value<std::string>());
        },
        [&value, write] { return toml_string(write(value)); });
  }
  template <typename Choice, std::size_t n>
  void word(const char* key, Choice& value, const Word<Choice> (&words)[n], const char* what, const char* help) {
    choice<Choice>(
        key, value, [&words, what](std::string_view name) { return from_word(std::span(words), name, what); },
        [&words](Choice one) { return word_for(std::span(words), one); }, help);
  }
  template <typename T, typename Read, typename Write>
  void list(const char* key, std::vector<T>& values, Read read, Write write, const char* help) {
    add(
        key, help,
        [&values, read](const toml::node& node) {
          std::vector<T> fresh;
          if (const toml::array* all = node.as_array()) {
            if (all->size() > 65536) fail("{} values were given; expected at most 65536", all->size());
            for (const toml::node& one : *all) fresh.push_back(read(one));
          } else {
            fresh.push_back(read(node));
          }
          values = std::move(fresh);
        },
        [&values, write] {
          std::string line;
          for (const T& value : values) line += (line.empty() ? "" : ", ") + write(value);
          return "[" + line + "]";
        });
  }
  void wholes(const char* key, std::vector<std::int64_t>& values, std::int64_t low, std::int64_t high,
              const char* help) {
    list(
        key, values, [=](const toml::node& node) { return read_whole(node, low, high); },
        [](std::int64_t value) { return std::to_string(value); }, help);
  }
  void numbers(const char* key, std::vector<double>& values, double low, double high, const char* help) {
    list(
        key, values, [=](const toml::node& node) { return read_number(node, low, high); }, number_text, help);
  }
  void table(const char* key, std::map<std::string, double>& values, const char* help,
             double low = -std::numeric_limits<double>::max(), double high = std::numeric_limits<double>::max()) {
    ConfigField field{.key = key, .help = help, .read = {}, .write = {}};
    field.read = [key](const toml::node& node) { fail("{} was given; expected a table [{}]", given(node), key); };
    field.read_entry = [&values, low, high](const std::string& name, const toml::node& node) {
      values[name] = read_number(node, low, high);
    };
    field.entries = [&values] {
      std::vector<std::pair<std::string, std::string>> all;
      for (const auto& [name, value] : values) all.emplace_back(name, number_text(value));
      return all;
    };
    fields.push_back(std::move(field));
  }

  // The last field is printed only where it has another value than this one: configurations written before there was
  // such a key stay what they were.
  void only_unless(const char* value) { fields.back().unless = value; }

  std::vector<ConfigField> fields;

 private:
  void add(const char* key, const char* help, std::function<void(const toml::node&)> read,
           std::function<std::string()> write) {
    fields.push_back({.key = key, .help = help, .read = std::move(read), .write = std::move(write)});
  }
};

}  // namespace norma
