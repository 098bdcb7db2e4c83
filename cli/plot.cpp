// norma plot: a figure of results.json as SVG, PDF, PNG or CSV; or the whole report as HTML.
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "cli/output.h"
#include "cli/verbs.h"
#include "norma/core/error.h"
#include "norma/report/figure.h"
#include "norma/report/report.h"

namespace norma::cli {
namespace {

struct PlotOptions {
  std::string results, figure = "loss", out, width = "page";
};

std::filesystem::path results_file(const std::string& given) {
  std::filesystem::path path = given;
  if (std::filesystem::is_directory(path)) path /= "results.json";
  if (!std::filesystem::exists(path)) {
    fail("there is no '{}'; expected results.json of a study, sweep or inspection, or the folder that holds it",
         path.string());
  }
  return path;
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) fail("'{}' cannot be read", path.string());
  return text.str();
}

void run(const PlotOptions& options) {
  const std::filesystem::path path = results_file(options.results);
  const std::string results = text_of(path);
  if (std::filesystem::path(options.out).extension() == ".html")
    return write_report(options.out, results, "'" + path.string() + "'");
  const std::vector<Figure> figures = figures_of(read_results(results, "'" + path.string() + "'"));
  if (options.figure == "list") {
    for (const Figure& figure : figures) print("{:<24} {}\n", figure.id, figure.title);
    return;
  }
  const Figure& figure = find_figure(figures, options.figure);
  const std::filesystem::path out = options.out.empty() ? options.figure + ".svg" : options.out;
  write_figure(out, figure, options.width == "column" ? FigureWidth::column : FigureWidth::page);
  print("{}\n{}\n", out.string(), figure.caption);
}

}  // namespace

void add_plot(CLI::App& app, int& /*exit_code*/) {
  const auto options = std::make_shared<PlotOptions>();
  CLI::App* verb = app.add_subcommand("plot", "Draw a figure of results.json: SVG, PDF, PNG or CSV; no browser needed");
  verb->add_option("results", options->results, "results.json of a study, sweep or inspection, or its folder")
      ->required()
      ->type_name(kFile);
  verb->add_option("--figure", options->figure, "loss, stability, curves, depth, init, ...; list: say which there are")
      ->capture_default_str()
      ->type_name(kText);
  verb->add_option("--out", options->out, "FILE.svg, .pdf, .png or .csv; .html: the whole report. Default FIGURE.svg")
      ->type_name(kFile);
  verb->add_option("--width", options->width, "page (180 mm) or column (85 mm)")
      ->capture_default_str()
      ->type_name("page|column")
      ->check(CLI::IsMember({"page", "column"}));
  verb->callback([options] { run(*options); });
}

}  // namespace norma::cli
