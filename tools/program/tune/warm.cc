// annulus warm: compiles the kernels for problems ahead, into a folder that can be shipped.

#include <CLI/CLI.hpp>

#include "annulus/kernels.h"
#include "base/fail.h"
#include "program/cli/interruption.h"
#include "program/cli/number_option.h"
#include "program/cli/output.h"
#include "program/cli/paths.h"
#include "program/cli/verb.h"
#include "program/input/options.h"
#include "program/input/shapes.h"

namespace annulus::program {
namespace {

struct WarmArguments {
  // A file or the name of a preset; may be empty if one of the next three is given.
  std::string shapes;
  std::string model;  // the name of a model of annulus/kernels.h
  bool general = false;
  std::vector<std::string> from;  // folders with compiled kernels
  std::string into;
  std::vector<std::string> devices;
  std::vector<std::string> architectures;
  std::string templates;
  std::string tuned;  // like ANNULUS_TUNED
  int threads = 0;    // 0: one per processor
  std::int64_t max_work = kDefaultWorkSteps;
  bool verbose = false;
  bool json = false;
};

base::Json json_of(const std::string& folder, const WarmResult& result) {
  base::Json json;
  json["folder"] = folder;
  json["nvrtc"] = result.nvrtc_version;
  json["devices"] = result.devices;
  json["kernels"] = result.kernels;
  json["compiled"] = result.compiled;
  json["there"] = result.there;
  json["left"] = result.left;
  json["cancelled"] = result.cancelled;
  json["bytes"] = result.bytes;
  json["seconds"] = result.seconds;
  json["failures"] = base::Json::array();
  for (const WarmFailure& failure : result.failures) {
    json["failures"].push_back(
        {{"device", failure.device}, {"wanted", failure.wanted}, {"error", failure.error}});
  }
  return json;
}

void print(const std::string& folder, const WarmResult& result) {
  for (const std::string& device : result.devices) print_line("for", device);
  print_line("compiled",
             fmt::format("{} of {} kernels by NVRTC {} in {:.1f} s; {} were there", result.compiled,
                         result.kernels, result.nvrtc_version, result.seconds, result.there));
  for (const WarmFailure& failure : result.failures) {
    print_line("failed",
               fmt::format("{} for {}: {}", failure.wanted, failure.device, failure.error));
  }
  if (result.cancelled) {
    print_line("left", fmt::format("{} kernels, as it was interrupted; the same command continues",
                                   result.left));
  }
  print_line("folder", fmt::format("{}, {:.1f} MB of these kernels", folder,
                                   static_cast<double>(result.bytes) / 1e6));
  print_line(
      "to ship",
      "copy it to lib/annulus/kernels next to libannulus.so, or to a folder that ANNULUS_KERNELS "
      "names; its owner must be the user or root, and no other user may write to it");
}

// A failure takes precedence over an unfinished run.
Exit exit_of(const WarmResult& result) {
  if (!result.failures.empty()) return exit_code(result.failures.front().code);
  return result.cancelled ? Exit::kPartial : Exit::kOk;
}

Exit warm(const WarmArguments& arguments) {
  WarmWork work;
  if (arguments.shapes.empty() && arguments.model.empty() && !arguments.general &&
      arguments.from.empty()) {
    base::fail(ErrorCode::kInvalidArgument,
               "nothing to compile; give --shapes, --model, --general, --from, or several of them");
  }
  work.general = arguments.general;
  for (const std::string& folder : arguments.from) work.folders.push_back(absolute_paths(folder));
  if (!arguments.shapes.empty()) {
    read_shape_lines(arguments.shapes, [&](const std::string& line) {
      parse_warm_shape(line, arguments.max_work, &work);
    });
  }
  if (!arguments.model.empty()) {
    PlanOptions plain;
    plain.work.steps = arguments.max_work;
    for (Problem& problem : read_model(arguments.model)) {
      work.shapes.push_back({std::move(problem), plain, {}});
    }
  }
  WarmOptions options;
  options.folder = absolute_paths(arguments.into);
  options.devices = arguments.devices;
  options.devices.insert(options.devices.end(), arguments.architectures.begin(),
                         arguments.architectures.end());
  options.template_dir = arguments.templates;
  options.tuned_path = tuned_path_of(arguments.tuned);
  options.threads = arguments.threads;
  if (arguments.verbose) options.log_level = LogLevel::kDebug;
  options.log = [](LogLevel, std::string_view text) { print_log(text); };
  const Interruption interruption;
  options.cancel = &interruption.arrived();
  WarmResult result;
  {
    Progress progress("compiling");
    options.progress = [&](const WarmProgress& at) {
      progress.say(
          fmt::format("{}/{} kernels, {:.0f} s: {}", at.done, at.kernels, at.seconds, at.last));
    };
    result = annulus::warm(work, options);
  }
  if (arguments.json) {
    print_json(json_of(options.folder, result));
  } else {
    print(options.folder, result);
  }
  return exit_of(result);
}

void add_options(CLI::App& app, WarmArguments* arguments) {
  app.add_option("--shapes", arguments->shapes,
                 "a file with one shape on each line, as options of run, --requests of a batch "
                 "included; or a preset: small, common")
      ->type_name(kFile)
      ->check(not_empty());
  app.add_option(
         "--model", arguments->model,
         "the shapes of a model by its name, as llama-3-8b; annulus tune --models lists them")
      ->type_name("NAME")
      ->check(not_empty());
  app.add_flag("--general", arguments->general,
               "all general kernels, which plans that do not wait begin with");
  app.add_option("--from", arguments->from,
                 "the kernels of the architecture in this folder of compiled kernels, such as the "
                 "cache of a simulated device; may be given several times")
      ->type_name("FOLDER");
  app.add_option("--into", arguments->into,
                 "folder for the kernels, which is created; files that are in it stay")
      ->type_name(kFolder)
      ->required();
  app.add_option("--device", arguments->devices,
                 "what to compile for, may be given several times: a GPU by name (a100, l4, "
                 "rtx4090, h100, ...) "
                 "or by architecture (sm_89), which need not be here; sim:sm_80, sim:sm_90a; "
                 "cuda:N; default: ANNULUS_DEVICE, "
                 "else the first GPU, else a simulated one")
      ->type_name("DEVICE")
      ->allow_extra_args(false);
  app.add_option(
         "--arch", arguments->architectures,
         "all GPUs of an architecture that are known by name: sm_80, sm_89, sm_90a, sm_90, ...")
      ->type_name("ARCH")
      ->allow_extra_args(false);
  app.add_option("--templates", arguments->templates, "folder of kernel templates to use instead")
      ->type_name(kFolder);
  app.add_option("--tuned", arguments->tuned,
                 "folders of tuned results, ':' between them; 'none': no folder")
      ->type_name(kPaths);
  add_number(app, "--threads", &arguments->threads,
             "kernels to compile at a time; 0: one for each "
             "processor")
      ->check(CLI::Range(0, 1024));
  add_max_work(app, &arguments->max_work);
  app.add_flag("--verbose,-v", arguments->verbose, "notes of the library on stderr");
  add_json(app, &arguments->json);
}

}  // namespace

const Verb verb_warm = {"warm",
                        "compile the kernels of problems ahead, into a folder to ship",
                        {"annulus warm --shapes small --device h100 --into kernels"},
                        add_verb<WarmArguments, add_options, warm>};

}  // namespace annulus::program
