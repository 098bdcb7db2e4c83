// norma completion bash|zsh|fish: a script for the shell, made from the same table as --help.
#include <fmt/format.h>

#include "cli/interface.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "norma/schemes/library.h"
#include "norma/train/config.h"

namespace norma::cli {
namespace {

std::string scheme_words() {
  std::vector<std::string> names;
  for (const SchemeEntry& entry : SchemeLibrary().all()) names.push_back(entry.name);
  return fmt::format("{}", fmt::join(names, " "));
}

bool is_path(const std::string& value) { return value == kFile || value == kFolder || value == kRun; }

std::string shell_quoted(std::string_view text) {  // for all three shells, between single quotes
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

// What completes the value of an option in bash: arguments of compgen; empty: nothing is known of it.
std::string bash_values(const OptionText& option) {
  if (!option.choices.empty()) return fmt::format("-W '{}'", fmt::join(option.choices, " "));
  if (option.value == kScheme) return "-W \"$schemes\" -f";
  if (option.value == kFolder) return "-d";
  return is_path(option.value) ? "-f" : "";
}

std::string bash_verb(const VerbText& verb) {
  std::string words, values, positional;
  for (const OptionText& option : verb.options) {
    if (option.positional) {
      if (positional.empty()) positional = bash_values(option);
      continue;
    }
    for (const std::string& name : option.names) words += (words.empty() ? "" : " ") + name;
    if (option.value.empty()) continue;
    values += fmt::format("        {}) values=({}) known=1 ;;\n", fmt::join(option.names, "|"), bash_values(option));
  }
  std::string text =
      fmt::format("    {})\n      options='{}'{}\n", verb.name, words, verb.takes_keys ? "\" $keys\"" : "");
  if (!values.empty()) text += fmt::format("      case $previous in\n{}      esac\n", values);
  return text + fmt::format("      positional=({})\n      ;;\n", positional);
}

// In zsh a colon ends a part, and brackets hold the help.
std::string zsh_text(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == ':' || c == '[' || c == ']' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

std::string zsh_action(const OptionText& option) {
  if (!option.choices.empty()) return fmt::format("({})", fmt::join(option.choices, " "));
  if (option.value == kScheme) return "($schemes)";
  if (option.value == kFolder) return "_files -/";
  return is_path(option.value) ? "_files" : " ";
}

std::string zsh_verb(const VerbText& verb) {
  std::string text = fmt::format("    {})\n      _arguments -s", verb.name);
  for (const OptionText& option : verb.options) {
    // Schemes are a variable, which double quotes let through.
    const auto add = [&](const std::string& argument) {
      text += " \\\n        " +
              (argument.find("$schemes") != std::string::npos ? "\"" + argument + "\"" : shell_quoted(argument));
    };
    if (option.positional) {
      add(fmt::format("{}:{}:{}", option.many ? "*" : "", zsh_text(option.names.front()), zsh_action(option)));
      continue;
    }
    const std::string value =
        option.value.empty() ? "" : fmt::format(":{}:{}", zsh_text(option.value), zsh_action(option));
    const bool schemes = value.find("$schemes") != std::string::npos;
    for (const std::string& name : option.names)
      add(fmt::format("{}{}[{}]{}", option.many ? "*" : "", name, schemes ? name : zsh_text(option.help), value));
  }
  if (verb.takes_keys) text += " \\\n        $keys";
  return text + "\n      ;;\n";
}

std::string fish_values(const OptionText& option) {
  if (option.value.empty()) return "";
  if (!option.choices.empty())
    return fmt::format(" -x -a {}", shell_quoted(fmt::format("{}", fmt::join(option.choices, " "))));
  if (option.value == kScheme) return " -r -a \"$norma_schemes\"";
  if (option.value == kFolder) return " -x -a '(__fish_complete_directories)'";
  return is_path(option.value) ? " -r -F" : " -x";
}

std::string fish_verb(const VerbText& verb) {
  const std::string in_verb = fmt::format("complete -c norma -n '__fish_seen_subcommand_from {}'", verb.name);
  std::string text =
      fmt::format("complete -c norma -n __fish_use_subcommand -a {} -d {}\n", verb.name, shell_quoted(verb.about));
  for (const OptionText& option : verb.options) {
    if (option.positional) {
      if (is_path(option.value)) text += in_verb + " -F\n";
      if (option.value == kScheme) text += in_verb + " -a \"$norma_schemes\"\n";
      if (!option.choices.empty())
        text += fmt::format("{} -a {}\n", in_verb, shell_quoted(fmt::format("{}", fmt::join(option.choices, " "))));
      continue;
    }
    text += in_verb;
    for (const std::string& name : option.names)
      text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
    text += fish_values(option) + " -d " + shell_quoted(option.help) + "\n";
  }
  if (!verb.takes_keys) return text;
  for (const ConfigKey& key : config_keys(RunConfig()))
    text += fmt::format("{} -l {} -x -d {}\n", in_verb, key.name, shell_quoted(key.help));
  return text;
}

}  // namespace

std::string bash_completion(const std::vector<VerbText>& verbs) {
  std::string names, keys, cases;
  for (const VerbText& verb : verbs) {
    names += (names.empty() ? "" : " ") + verb.name;
    cases += bash_verb(verb);
  }
  for (const ConfigKey& key : config_keys(RunConfig())) keys += (keys.empty() ? "" : " ") + ("--" + key.name + "=");
  return fmt::format(R"(# Completion of norma in bash; made by: norma completion bash
_norma() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  local options= known= keys='{}'
  local schemes='{}'
  local -a values=() positional=()
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{} --help --version' -- "$current"))
    return
  fi
  case ${{COMP_WORDS[1]}} in
{}  esac
  if [ -n "$known" ]; then
    [ ${{#values[@]}} -gt 0 ] && COMPREPLY=($(compgen "${{values[@]}}" -- "$current"))
  elif [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
    if [[ ${{#COMPREPLY[@]}} -eq 1 && ${{COMPREPLY[0]}} == *= ]]; then compopt -o nospace 2>/dev/null; fi
  elif [ ${{#positional[@]}} -gt 0 ]; then
    COMPREPLY=($(compgen "${{positional[@]}}" -- "$current"))
  fi
}}
complete -o filenames -F _norma norma
)",
                     keys, scheme_words(), names, cases);
}

std::string zsh_completion(const std::vector<VerbText>& verbs) {
  std::string names, keys, cases;
  for (const VerbText& verb : verbs) {
    names += "    " + shell_quoted(verb.name + ":" + zsh_text(verb.about)) + "\n";
    cases += zsh_verb(verb);
  }
  for (const ConfigKey& key : config_keys(RunConfig()))
    keys += fmt::format("    {}\n", shell_quoted(fmt::format("--{}=-[{}]:value: ", key.name, zsh_text(key.help))));
  return fmt::format(R"(#compdef norma
# Completion of norma in zsh; made by: norma completion zsh
_norma() {{
  local -a verbs keys
  local schemes='{}'
  verbs=(
{}  )
  keys=(
{}  )
  if (( CURRENT == 2 )); then
    _describe verb verbs
    return
  fi
  local verb=$words[2]
  shift words
  (( CURRENT-- ))
  case $verb in
{}  esac
}}
_norma "$@"
)",
                     scheme_words(), names, keys, cases);
}

std::string fish_completion(const std::vector<VerbText>& verbs) {
  std::string text = "# Completion of norma in fish; made by: norma completion fish\n";
  text += fmt::format("set -g norma_schemes '{}'\ncomplete -c norma -f\n", scheme_words());
  for (const VerbText& verb : verbs) text += fish_verb(verb);
  return text;
}

void add_completion(CLI::App& app, int&) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* verb = app.add_subcommand("completion", "Print a script that completes norma's command line in a shell");
  verb->add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->type_name("bash|zsh|fish")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  verb->footer("bash: norma completion bash > ~/.local/share/bash-completion/completions/norma");
  verb->callback([shell, &app] {
    const std::vector<VerbText> verbs = describe_verbs(app);
    write_out(*shell == "bash"  ? bash_completion(verbs)
              : *shell == "zsh" ? zsh_completion(verbs)
                                : fish_completion(verbs));
  });
}

}  // namespace norma::cli
