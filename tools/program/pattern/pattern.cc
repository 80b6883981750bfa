// annulus pattern: shows the leaves of patterns, and makes, draws and converts block layouts. No
// verb here needs a device.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "annulus/layout.h"
#include "annulus/types.h"
#include "base/fail.h"
#include "base/files.h"
#include "program/cli/number_option.h"
#include "program/cli/output.h"
#include "program/cli/paths.h"
#include "program/cli/verb.h"
#include "program/input/options.h"
#include "program/input/problem_input.h"

namespace annulus::program {
namespace {

// The source of a layout, which is a pattern with sizes or a file, and the options of all verbs.
struct PatternArguments {
  std::string pattern;
  std::string input;
  std::string from = "layout";        // the input's format
  std::optional<std::int64_t> seq;    // not given: the file's, or 1024
  std::optional<std::int64_t> seq_k;  // not given: equal to seq
  std::optional<std::int64_t> heads;  // not given: the file's, or the number of distinct heads
  std::string block;                  // "128x128"

  std::int64_t head = 0;   // draw
  std::int64_t cells = 0;  // draw
  std::string svg;         // draw: the SVG file to write
  int layers = 0;          // stats
  std::string other;       // diff: the second file
  std::int64_t lines = 100;
  std::string output;  // export, import
  std::string to = "layout";
  std::int64_t max_work = kDefaultWorkSteps;  // bound for the whole verb; see WorkLimit::steps
  bool json = false;
};

// The given sizes. Sizes that were not given are 0.
LayoutSizes sizes_of(const PatternArguments& arguments) {
  LayoutSizes sizes = {0, 0, arguments.seq.value_or(0), arguments.seq_k.value_or(0),
                       arguments.heads.value_or(0)};
  if (!arguments.seq_k) sizes.seq_k = sizes.seq_q;
  if (!arguments.block.empty()) {
    std::tie(sizes.block_rows, sizes.block_columns) =
        two_numbers(arguments.block, 'x', "--block (RxC)");
    if (sizes.block_rows < 1 || sizes.block_columns < 1) {
      base::fail(ErrorCode::kInvalidArgument, "--block is {}; give positive sizes as in 128x128",
                 arguments.block);
    }
  }
  return sizes;
}

// The number of distinct heads of a pattern, so that the layout has all of them.
std::int64_t distinct_heads(const Pattern& pattern) {
  if (pattern.heads() > 1) return pattern.heads();
  // If there are more, the pattern is random for every head, and the layout would have heads that
  // the user does not need.
  constexpr std::int64_t kMost = 1024;
  const std::int64_t heads = pattern.distinct_heads(kMost + 1);
  if (heads > kMost) {
    base::fail(ErrorCode::kInvalidArgument,
               "every head of this pattern sees different keys; give their number with --heads");
  }
  return heads;
}

// The sizes for a layout that is made from a pattern.
LayoutSizes full_sizes(const PatternArguments& arguments, const Pattern& pattern) {
  LayoutSizes sizes = sizes_of(arguments);
  if (!arguments.seq) sizes.seq_q = 1024;
  if (!arguments.seq_k) sizes.seq_k = sizes.seq_q;
  if (sizes.block_rows == 0) sizes.block_rows = sizes.block_columns = 128;
  if (!arguments.heads) sizes.heads = distinct_heads(pattern);
  return sizes;
}

// The given sizes for a layout from a file, which may lack some. 0 is rejected, because it means
// that a size was not given.
LayoutSizes sizes_beside_file(const PatternArguments& arguments) {
  for (const auto& [option, value] : {std::pair("--seq", arguments.seq),
                                      {"--seq-k", arguments.seq_k},
                                      {"--heads", arguments.heads}}) {
    if (value.value_or(1) > 0) continue;
    base::fail(ErrorCode::kInvalidArgument, "{} is {}; give a positive number, or leave it out",
               option, *value);
  }
  return sizes_of(arguments);
}

// A property that a file of a mask format does not contain, and the option that gives it.
struct Unsaid {
  LayoutFormat format;
  std::string_view what;
  std::int64_t LayoutSizes::*size;
  std::string_view option;
};
constexpr Unsaid kUnsaid[] = {
    {LayoutFormat::kNpy, "how large its blocks are", &LayoutSizes::block_rows, "--block 128x128"},
    {LayoutFormat::kRaw, "how large its blocks are", &LayoutSizes::block_rows, "--block 128x128"},
    {LayoutFormat::kRaw, "how long its sequences are", &LayoutSizes::seq_q, "--seq 4096"},
};

BlockLayout read_layout(const std::string& path, const PatternArguments& arguments) {
  const LayoutFormat format = layout_format(arguments.from);
  const LayoutSizes sizes = sizes_beside_file(arguments);
  for (const Unsaid& each : kUnsaid) {
    if (each.format != format || sizes.*each.size != 0) continue;
    base::fail(ErrorCode::kInvalidArgument, "{}: a file of {} does not state {}; give it as in {}",
               path, arguments.from, each.what, each.option);
  }
  return import_layout(path, format, sizes);
}

BlockLayout layout_of(const PatternArguments& arguments) {
  if (arguments.input.empty() == arguments.pattern.empty()) {
    base::fail(ErrorCode::kInvalidArgument, "give --pattern with sizes, or --input, and not both");
  }
  if (arguments.input.empty()) {
    const Pattern pattern = parse_pattern(arguments.pattern);
    return make_layout(pattern, full_sizes(arguments, pattern));
  }
  return read_layout(arguments.input, arguments);
}

void write_text(const std::string& path, const std::string& text) {
  base::FileSystem files;
  base::write_file_atomically(files, path, std::as_bytes(std::span(text)));
}

base::Json json_of(const LayoutSizes& sizes) {
  return {{"block_rows", sizes.block_rows},
          {"block_columns", sizes.block_columns},
          {"seq_q", sizes.seq_q},
          {"seq_k", sizes.seq_k},
          {"heads", sizes.heads}};
}

std::string text_of(const LayoutSizes& sizes) {
  return fmt::format(
      "Sq {} Sk {}, blocks of {} x {}, {}", sizes.seq_q, sizes.seq_k, sizes.block_rows,
      sizes.block_columns,
      sizes.heads == 1 ? "one layout for all heads" : fmt::format("{} heads", sizes.heads));
}

// The files that a verb reads. The verb must not overwrite them.
std::vector<std::string> files_read(const PatternArguments& arguments) {
  std::vector<std::string> files = files_named_in(arguments.pattern);
  files.push_back(arguments.input);
  return files;
}

Exit draw(const PatternArguments& arguments) {
  check_is_new("--svg", arguments.svg, files_read(arguments));
  check_is_svg("--svg", arguments.svg);
  const BlockLayout layout = layout_of(arguments);
  const std::int64_t heads = arguments.heads.value_or(annulus::sizes_of(layout).heads);
  if (arguments.head >= heads) {
    base::fail(ErrorCode::kInvalidArgument,
               "--head is {}, but {} differ, from 0 on; give one of them, or --heads for more",
               arguments.head, heads);
  }
  const PictureOptions options = {arguments.head, arguments.cells};
  if (!arguments.svg.empty()) write_text(arguments.svg, svg_picture(layout, options));
  const std::string text = text_picture(layout, options);
  if (arguments.json) {
    base::Json json;
    json["layout"] = json_of(annulus::sizes_of(layout));
    json["head"] = arguments.head;
    json["picture"] = text;
    json["svg"] = arguments.svg;
    print_json(json);
  } else if (arguments.svg.empty()) {
    std::fputs(text.c_str(), stdout);
  } else {
    print_line("picture", arguments.svg);
  }
  return Exit::kOk;
}

// The results of `pattern stats`.
struct Stats {
  BlockLayout layout;
  PatternStatistics of;
  // False: the layout came from a file, and the pairs inside its blocks are unknown.
  bool of_pattern = false;
  std::vector<double> reach;  // the share reached after one layer, two layers, and so on
};

base::Json stats_json(const Stats& found) {
  const LayoutStatistics& of = found.of.layout;
  base::Json json;
  json["layout"] = json_of(annulus::sizes_of(found.layout));
  json["rows"] = of.rows;
  json["columns"] = of.columns;
  json["distinct_heads"] = of.distinct_heads;
  json["kept"] = of.kept;
  json["partial"] = of.partial;
  json["block_density"] = of.block_density.value;
  json["density"] = found.of_pattern ? base::Json(found.of.pairs.value) : base::Json(nullptr);
  json["overhead"] = found.of_pattern ? base::Json(found.of.overhead) : base::Json(nullptr);
  json["shortest_row"] = of.shortest_row;
  json["longest_row"] = of.longest_row;
  json["empty_rows"] = of.empty_rows;
  json["row_imbalance"] = of.row_imbalance;
  json["shortest_column"] = of.shortest_column;
  json["longest_column"] = of.longest_column;
  json["empty_columns"] = of.empty_columns;
  json["column_imbalance"] = of.column_imbalance;
  json["mean_distance"] = of.mean_distance;
  json["bytes"] = of.bytes;
  json["reachability"] = found.reach;
  return json;
}

void print_stats(const Stats& found) {
  const LayoutStatistics& of = found.of.layout;
  print_line("layout", text_of(annulus::sizes_of(found.layout)));
  print_line("kept", fmt::format("{} blocks, {} of them partial, of {} stored heads", of.kept,
                                 of.partial, of.distinct_heads));
  print_line("density", fmt::format("{:.4f} of all blocks", of.block_density.value));
  if (found.of_pattern) {
    print_line("pairs", fmt::format("{:.4f} of all pairs: blocks hold {:.2f} times as many",
                                    found.of.pairs.value, found.of.overhead));
  }
  const auto load = [](std::int64_t shortest, std::int64_t longest, std::int64_t empty,
                       double imbalance) {
    return fmt::format("{} to {} blocks, {} empty, longest over mean {:.2f}", shortest, longest,
                       empty, imbalance);
  };
  print_line("rows", load(of.shortest_row, of.longest_row, of.empty_rows, of.row_imbalance));
  print_line("columns",
             load(of.shortest_column, of.longest_column, of.empty_columns, of.column_imbalance));
  print_line("distance",
             fmt::format("{:.1f} tokens from the diagonal in the mean", of.mean_distance));
  print_line("memory", fmt::format("{} bytes", of.bytes));
  for (std::size_t n = 0; n < found.reach.size(); ++n) {
    print_line(n == 0 ? "reach" : "", fmt::format("{:.4f} after {} layers", found.reach[n], n + 1));
  }
}

Exit stats(const PatternArguments& arguments) {
  Stats found;
  found.layout = layout_of(arguments);
  found.of_pattern = !arguments.pattern.empty();
  if (found.of_pattern) {
    const Pattern pattern = parse_pattern(arguments.pattern);
    found.of = statistics(pattern, full_sizes(arguments, pattern));
  } else {
    found.of.layout = statistics(found.layout);
  }
  if (arguments.layers > 0) found.reach = reachability(found.layout, arguments.layers);
  if (arguments.json) {
    print_json(stats_json(found));
  } else {
    print_stats(found);
  }
  return Exit::kOk;
}

Exit diff(const PatternArguments& arguments) {
  const BlockLayout first = read_layout(arguments.input, arguments);
  const BlockLayout second = read_layout(arguments.other, arguments);
  const LayoutDifference found = difference(first, second, arguments.lines);
  if (arguments.json) {
    base::Json json;
    json["equal"] = found.text.empty();
    json["same_sizes"] = found.same_sizes;
    json["only_first"] = found.only_first;
    json["only_second"] = found.only_second;
    json["flags"] = found.flags;
    json["text"] = found.text;
    print_json(json);
  } else if (found.text.empty()) {
    std::printf("no difference\n");
  } else {
    std::fputs(found.text.c_str(), stdout);
  }
  return Exit::kOk;
}

Exit convert(const PatternArguments& arguments) {
  check_is_new("the output", arguments.output, files_read(arguments));
  const LayoutFormat format = layout_format(arguments.to);
  BlockLayout layout = layout_of(arguments);
  // Other formats store every head separately. So equal heads are found again here.
  if (format == LayoutFormat::kLayout) layout = share_heads(layout);
  export_layout(layout, arguments.output, format);
  if (arguments.json) {
    base::Json json;
    json["layout"] = json_of(annulus::sizes_of(layout));
    json["kept"] = layout.indices.size();
    json["distinct_heads"] = layout.heads;
    json["output"] = arguments.output;
    json["format"] = to_string(format);
    print_json(json);
    return Exit::kOk;
  }
  print_line("layout", text_of(annulus::sizes_of(layout)));
  print_line("kept",
             fmt::format("{} blocks of {} stored heads", layout.indices.size(), layout.heads));
  print_line("written", fmt::format("{} as {}", arguments.output, to_string(format)));
  return Exit::kOk;
}

// Prints lines of two columns. A long text of the first column is printed on a separate line.
void print_columns(const std::vector<std::pair<std::string_view, std::string_view>>& lines) {
  constexpr std::size_t kMost = 32;
  std::size_t width = 0;
  for (const auto& [first, second] : lines) {
    if (first.size() <= kMost) width = std::max(width, first.size());
  }
  for (const auto& [first, second] : lines) {
    if (first.size() > width) {
      fmt::print("{}\n{:{}}  {}\n", first, "", width, second);
    } else {
      fmt::print("{:{}}  {}\n", first, width, second);
    }
  }
}

Exit list(const PatternArguments& arguments) {
  base::Json json;
  std::vector<std::pair<std::string_view, std::string_view>> lines;
  for (const PatternWord& word : pattern_words()) {
    lines.emplace_back(word.form, word.meaning);
    json["words"].push_back({{"name", word.name}, {"form", word.form}, {"meaning", word.meaning}});
  }
  if (arguments.json) {
    print_json(json);
    return Exit::kOk;
  }
  std::printf("What a query sees. Patterns are joined by & (both), | (either) and ~ (not).\n\n");
  print_columns(lines);
  return Exit::kOk;
}

Exit list_presets(const PatternArguments& arguments) {
  base::Json json;
  std::vector<std::string> names;
  for (const PresetInfo& preset : presets()) {
    names.push_back(fmt::format("preset({})", preset.name));
    json["presets"].push_back({{"name", preset.name},
                               {"expression", preset.expression},
                               {"density", preset.density},
                               {"lengths", kPresetLengths}});
  }
  if (arguments.json) {
    print_json(json);
    return Exit::kOk;
  }
  std::vector<std::pair<std::string_view, std::string_view>> lines;
  for (std::size_t i = 0; i < names.size(); ++i) {
    lines.emplace_back(names[i], presets()[i].expression);
  }
  print_columns(lines);
  return Exit::kOk;
}

void add_sizes(CLI::App& app, PatternArguments* to) {
  add_max_work(app, &to->max_work);
  const auto add = [&](const char* names, std::optional<std::int64_t>* number, const char* help) {
    app.add_option(names, *number, help)->check(number_of_type<std::int64_t>());
  };
  add("--seq,-S", &to->seq,
      "queries; and keys, unless --seq-k is given; for a pattern, default: 1024");
  add("--seq-k", &to->seq_k, "keys; default: as --seq");
  add("--heads,-H", &to->heads,
      "query heads; for a pattern, default: the number of different heads");
  app.add_option("--block", to->block, "size of a block; for a pattern, default: 128x128")
      ->type_name(kBlockSize);
}

// "FORMAT:{layout,npy,...}"
std::string format_type() {
  constexpr LayoutFormat kFormats[] = {
      LayoutFormat::kLayout, LayoutFormat::kNpy,  LayoutFormat::kRaw,
      LayoutFormat::kCsr,    LayoutFormat::kCoo,  LayoutFormat::kBitset,
      LayoutFormat::kTopK,   LayoutFormat::kFlex, LayoutFormat::kFlashInfer};
  std::string names;
  for (const LayoutFormat format : kFormats) {
    names += fmt::format("{}{}", names.empty() ? "" : ",", to_string(format));
  }
  return "FORMAT:{" + names + "}";
}

CLI::Option* add_from(CLI::App& app, PatternArguments* to) {
  return app.add_option("--from", to->from, with_default("the input's format", to->from))
      ->type_name(format_type());
}

void add_source(CLI::App& app, PatternArguments* to) {
  app.add_option("--pattern,-p", to->pattern, "make the layout of this pattern; @file reads it")
      ->type_name("PATTERN");
  app.add_option("--input,-i", to->input, "read the layout from this file")->type_name(kFile);
  add_from(app, to)->excludes(app.get_option("--pattern"));
  add_sizes(app, to);
}

void add_json_option(CLI::App& app, PatternArguments* to) { add_json(app, &to->json); }

void add_draw_options(CLI::App& app, PatternArguments* to) {
  add_json(app, &to->json);
  add_source(app, to);
  add_number(app, "--head", &to->head, "which query head");
  add_number(app, "--cells", &to->cells,
             "the most cells in a row; default: 64 in text, 256 in an SVG");
  app.add_option("--svg", to->svg, "write an SVG to this file instead")->type_name(kFile);
}

void add_stats_options(CLI::App& app, PatternArguments* to) {
  add_json(app, &to->json);
  add_source(app, to);
  add_number(app, "--layers", &to->layers, "how far information travels in 1 to this many layers")
      ->check(CLI::PositiveNumber);
}

void add_diff_options(CLI::App& app, PatternArguments* to) {
  add_json(app, &to->json);
  app.add_option("first", to->input, "a file")->type_name(kFile)->required();
  app.add_option("second", to->other, "another")->type_name(kFile)->required();
  add_from(app, to);
  add_sizes(app, to);
  add_number(app, "--lines", &to->lines, "rows to show at most")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40));
}

void add_export_options(CLI::App& app, PatternArguments* to) {
  add_json(app, &to->json);
  add_source(app, to);
  app.add_option("output", to->output, "the file to write")->type_name(kFile)->required();
  app.add_option("--to", to->to, with_default("its format", to->to))->type_name(format_type());
}

void add_import_options(CLI::App& app, PatternArguments* to) {
  add_json(app, &to->json);
  app.add_option("input", to->input, "the file to read")->type_name(kFile)->required();
  app.add_option("output", to->output, "the file to write")->type_name(kFile)->required();
  add_from(app, to);
  add_sizes(app, to);
}

// Runs the verb within --max-work.
template <Exit (*verb)(const PatternArguments&)>
Exit limited(const PatternArguments& arguments) {
  const WorkScope scope({.steps = arguments.max_work});
  return verb(arguments);
}

}  // namespace

const Verb verb_pattern_list = {"pattern list",
                                "the words that patterns are made of",
                                {"annulus pattern list"},
                                add_verb<PatternArguments, add_json_option, list>};
const Verb verb_pattern_presets = {"pattern presets",
                                   "the patterns that have names",
                                   {"annulus pattern presets --json"},
                                   add_verb<PatternArguments, add_json_option, list_presets>};
const Verb verb_pattern_draw = {
    "pattern draw",
    "a picture of the blocks of one head",
    {"annulus pattern draw -p 'causal & (window(255, 0) | global(16))' -S 2048",
     "annulus pattern draw -p 'preset(bigbird)' -H 8 -S 4096 --svg bigbird.svg"},
    add_verb<PatternArguments, add_draw_options, limited<draw>>};
const Verb verb_pattern_stats = {
    "pattern stats",
    "density, balance and reach",
    {"annulus pattern stats -p 'preset(strided)' -S 4096 --block 64x64 --layers 4"},
    add_verb<PatternArguments, add_stats_options, limited<stats>>};
const Verb verb_pattern_diff = {"pattern diff",
                                "which blocks of two files differ",
                                {"annulus pattern diff old.layout new.layout"},
                                add_verb<PatternArguments, add_diff_options, limited<diff>>};
const Verb verb_pattern_export = {
    "pattern export",
    "write a pattern's layout, or a file's, to a file",
    {"annulus pattern export -p causal -S 1024 --block 64x64 --to csr mask.safetensors"},
    add_verb<PatternArguments, add_export_options, limited<convert>>};
const Verb verb_pattern_import = {
    "pattern import",
    "make a layout's file, which blocks(\"file\") reads, from another file",
    {"annulus pattern import --from csr mask.safetensors mask.layout",
     "annulus pattern import --from npy --block 64x64 mask.npy mask.layout"},
    add_verb<PatternArguments, add_import_options, limited<convert>>};

}  // namespace annulus::program
