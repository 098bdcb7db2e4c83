#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "report/figures/axis.h"
#include "report/figures/init.h"
#include "report/figures/parts.h"
#include "report/figures/writers.h"
#include "report/page/pages.h"
#include "report/page/words.h"

namespace norma {
namespace {

// The marker of a scheme, as figures have it.
std::string swatch(const CastMember& member, int index) {
  draw::Scene scene{.width = 12, .height = 12, .marks = {}, .spots = {}};
  scene.add(
      draw::marker(member.marker, {6, 6}, 4, member.tone == draw::Tone::rest ? draw::Tone::muted : member.tone, index));
  std::string svg = draw::write_svg(scene, draw::SvgFor::page, "", "");
  const std::string_view seen = "role=\"img\" aria-label=\"\"";
  return svg.replace(svg.find(seen), seen.size(), "aria-hidden=\"true\" class=\"swatch\"");
}

std::string evidence_html(const Verdict& verdict) {
  HtmlTable rows{.columns = {"Quantity", "Value", "95 % interval"}};
  for (const EvidenceItem& item : verdict.evidence) {
    const bool loss = item.text.find("loss") != std::string::npos, depth = item.text.starts_with("effective depth"),
               exponent = item.text.starts_with("exponent");
    const auto text = [&](double value) {
      return loss       ? draw::loss_text(value)
             : depth    ? draw::depth_text(value)
             : exponent ? draw::exponent_text(value)
                        : draw::plain(value);
    };
    rows.rows.push_back({item.text, text(item.value),
                         item.low < item.high ? fmt::format("{} to {}", text(item.low), text(item.high)) : "–"});
  }
  return table("Evidence", rows);
}

std::string formulas_html(const SchemeSummary& scheme) {
  std::string html = "<dl class=\"formulas\">\n";
  for (const auto& [name, formula] : scheme.formulas)
    html += fmt::format("<dt>{}</dt><dd><code>{}</code></dd>\n", escaped(name), escaped(formula));
  html += fmt::format("<dt>source</dt><dd>{}</dd>\n<dt>size</dt><dd>{}, {} with {}, at {}</dd>\n</dl>\n",
                      escaped(scheme.source), draw::counted(scheme.parameters, "parameter", "parameters"),
                      draw::counted(scheme.norm_instances, "norm", "norms"),
                      draw::counted(scheme.norm_parameters, "parameter", "parameters"),
                      draw::counted(scheme.layers, "layer", "layers"));
  if (!scheme.diagram_text.empty()) {
    html += fmt::format("<div class=\"diagram\" data-scheme=\"{}\">{}</div>\n", escaped(scheme.name),
                        preformatted(scheme.diagram_text, "Diagram of one layer of " + scheme.title));
  }
  return html;
}

std::string scheme_html(const PageParts& parts, const CastMember& member, int index) {
  const Verdict* verdict = verdict_of(parts.results, member.name);
  std::string inside;
  if (verdict != nullptr) inside += paragraph(verdict->words) + evidence_html(*verdict);
  for (const SchemeSummary& scheme : parts.results.schemes) {
    if (scheme.name == member.name) inside += formulas_html(scheme);
  }
  const std::string badge =
      verdict != nullptr ? fmt::format(" <span class=\"badge\">{}</span>", escaped(name_of(verdict->verdict))) : "";
  const std::string sentence =
      parts.results.tuned.empty() && verdict == nullptr ? "" : scheme_sentence(parts.results, member.name);
  return fmt::format("<details class=\"scheme\" data-s=\"{}\"><summary>{}<b>{}</b>{} {}</summary>\n{}</details>\n",
                     index, swatch(member, index), typeset(member.title), badge, typeset(sentence), inside);
}

// As the figures list them.
std::vector<int> order_of(const PageParts& parts) {
  std::vector<int> order(parts.cast.members().size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  const auto place = [&](int index) {
    const std::string& name = parts.cast.members()[static_cast<std::size_t>(index)].name;
    const Verdict* verdict = verdict_of(parts.results, name);
    if (verdict != nullptr) return verdict->rank > 0 ? verdict->rank : 1 << 20;
    int at = 0;
    for (const Tuned* one : tuned_in_order(parts.results)) {
      if (one->scheme == name) return at;
      ++at;
    }
    return at;
  };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return place(a) < place(b); });
  return order;
}

// "3 min" of "180s".
std::string budget_words(const std::string& budget) {
  double seconds = 0;
  const auto [end, error] = std::from_chars(budget.data(), budget.data() + budget.size(), seconds);
  const bool is_time = error == std::errc() && std::string_view(end, budget.data() + budget.size()) == "s";
  return is_time ? duration_words(seconds) : budget;
}

std::string rounds_html(const Results& results) {
  if (!results.course) return "";
  HtmlTable rows{.columns = {"Stage", "Steps", "Runs", "Why"}};
  for (const CourseRound& round : results.course->rounds)
    rows.rows.push_back(
        {std::string(name_of(round.stage)), std::to_string(round.steps), std::to_string(round.runs), round.why});
  return table(fmt::format("Rounds of the study, budget {}", budget_words(results.course->budget)), rows);
}

std::string environment_html(const Environment& machine) {
  return table("Machine",
               {.columns = {"What", "Which"},
                .rows = {{"norma", machine.norma + (machine.commit.empty() ? "" : ", commit " + machine.commit)},
                         {"compiler", machine.compiler},
                         {"processor", machine.cpu},
                         {"instruction set", machine.instruction_set},
                         {"cores", std::to_string(machine.cores)},
                         {"kernel", machine.kernel}}});
}

std::string list_html(std::string_view lead, const std::vector<std::string>& items) {
  if (items.empty()) return "";
  std::string html = fmt::format("<p>{}</p>\n<ul>\n", escaped(lead));
  for (const std::string& item : items) html += fmt::format("<li>{}</li>\n", typeset(item));
  return html + "</ul>\n";
}

}  // namespace

const Figure* PageParts::find(std::string_view id) const {
  const auto found = std::find_if(figures.begin(), figures.end(), [&](const Figure& one) { return one.id == id; });
  return found != figures.end() ? &*found : nullptr;
}

std::string PageParts::figure(std::string_view id, int number) const {
  const Figure* found = find(id);
  return found != nullptr ? figure_html(*found, number, Drawn::twice) : "";
}

std::string PageParts::folded_figures(std::string_view summary, const std::vector<std::string>& ids) const {
  std::string html;
  for (const std::string& id : ids) {
    const Figure* found = find(id);
    if (found != nullptr) html += figure_html(*found, 0, Drawn::once);
  }
  return folded(summary, html);
}

std::string head_html(std::string_view kicker, std::string_view title, std::string_view standfirst) {
  return fmt::format("<header class=\"head\">\n<p class=\"kicker\">{}</p>\n<h1>{}</h1>\n{}</header>\n", escaped(kicker),
                     typeset(title), paragraph(standfirst, "standfirst"));
}

std::string facts_of(const Results& results, const Cast& cast) {
  std::vector<std::string> facts = {draw::counted(static_cast<long long>(cast.members().size()), "scheme", "schemes")};
  if (!results.runs.empty()) facts.push_back(draw::counted(static_cast<long long>(results.runs.size()), "run", "runs"));
  if (results.task && !results.task->name.empty()) facts.push_back(results.task->name);
  facts.push_back(duration_words(results.seconds));
  facts.push_back(date_text(results.created));
  return fmt::format("{}", fmt::join(facts, " · "));
}

std::string schemes_html(const PageParts& parts) {
  std::string html;
  for (const int index : order_of(parts))
    html += scheme_html(parts, parts.cast.members()[static_cast<std::size_t>(index)], index);
  return section("schemes", "The schemes", html);
}

std::string init_html(const PageParts& parts, int number, std::string_view said) {
  if (parts.results.analyses.empty()) return "";
  std::string sentences;
  for (const Analysis* one : main_analyses(parts.results)) {
    if (const std::string law = law_sentence(*one, parts.cast); law != said) sentences += paragraph(law);
  }
  const std::string main = number > 0 ? parts.figure("init", number)
                                      : parts.folded_figures("Figure: laws at initialisation, with theory", {"init"});
  std::string rest;
  for (const Analysis& one : parts.results.analyses) {
    const std::string law = law_sentence(one, parts.cast);
    std::string inside = paragraph(law);
    for (const char* kind : {"init-", "places-", "values-"}) {
      const Figure* found = parts.find(kind + one.name);
      if (found != nullptr) inside += figure_html(*found, 0, Drawn::once);
    }
    rest += folded(one.title, inside);
  }
  return section(
      "init-section", is_trained(parts.results) ? "Inside the trained model" : "Before training",
      sentences + main +
          folded(draw::counted(static_cast<long long>(parts.results.analyses.size()), "analysis", "analyses") +
                     " one by one, by depth and by place",
                 rest));
}

std::string method_html(const Results& results) {
  std::string html =
      paragraph(results.task ? results.task->description : "") + preformatted(results.command, "Command");
  html += rounds_html(results) + folded("Configuration", preformatted(results.config, "Configuration"));
  if (results.environment) html += environment_html(*results.environment);
  html += list_html("Not tested:", results.advice.not_tested) + list_html("Notes:", results.notes);
  return section("method", "Method",
                 folded("What repeats it: command, rounds, configuration, machine, what was not tested", html));
}

}  // namespace norma
