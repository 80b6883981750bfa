// annulus warm and annulus cache: kernels are compiled ahead, shipped, and run where nothing
// compiles.

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/json.h"
#include "program/run_program.h"
#include "support/device.h"
#include "support/faulty_files.h"

namespace {

namespace fs = std::filesystem;
using namespace annulus;
using test::annulus_with;
using test::json_of;
using test::on_device;
using test::Outcome;
using test::refused;
using test::run_command;

constexpr char kNever[] = "ANNULUS_CACHE_DIR=none ANNULUS_COMPILE=never " ANNULUS_PROGRAM " ";

std::string shapes_file(const test::ScratchFolder& folder, const std::string& text) {
  const std::string path = folder / "shapes";
  std::ofstream(path) << text;
  return path;
}

std::size_t kernels_in(const std::string& folder) {
  std::size_t count = 0;
  for (const auto& each : fs::directory_iterator(folder)) {
    CHECK(each.path().extension() == ".kernel");
    ++count;
  }
  return count;
}

TEST_CASE("what was compiled ahead for a file of shapes runs where nothing compiles") {
  const test::ScratchFolder folder;
  const std::string shapes =
      shapes_file(folder,
                  "# a causal one, one with split rows, and a batch\n"
                  "--heads 2 --seq 96 --dim 32 --pattern causal\n"
                  "\n"
                  "--heads 2 --kv-heads 1 --seq 1 --seq-k 2000 --dim 64 "
                  "--pattern causal --kv-splits 4\n"
                  "--heads 4 --kv-heads 2 --dim 32 --requests \"1/70 x 3\"\n");
  const std::string into = folder / "deep/kernels";
  const std::string warm = "warm --json --shapes " + shapes + " --into " + into;
  const base::Json first = json_of(warm + on_device());
  CHECK(first["folder"] == into);
  CHECK(first["kernels"] >= 5);
  CHECK(first["compiled"] == first["kernels"]);
  CHECK(first["there"] == 0);
  CHECK(first["failures"].empty());
  CHECK(first["bytes"] > 10'000);
  CHECK(kernels_in(into) == first["kernels"]);
  // Other users may read the folder, but not write to it.
  struct stat status;
  REQUIRE(stat(into.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777u) == 0755);
  for (const auto& each : fs::directory_iterator(into)) {
    REQUIRE(stat(each.path().c_str(), &status) == 0);
    CHECK((status.st_mode & 0777u) == 0644);
  }
  // The second time there is nothing to compile.
  const base::Json second = json_of(warm + on_device());
  CHECK(second["compiled"] == 0);
  CHECK(second["there"] == first["kernels"]);
  CHECK(second["bytes"] == first["bytes"]);

  const std::string never = kNever;
  for (const char* command :
       {"run --heads 2 --seq 96 --dim 32 --pattern causal",
        "run --heads 2 --kv-heads 1 --seq 1 --seq-k 2000 --dim 64 --pattern causal --kv-splits 4",
        "run --heads 4 --kv-heads 2 --dim 32 --requests '1/70 x 3'"}) {
    CAPTURE(command);
    const Outcome ran = run_command(never + command + " --kernels " + into + on_device());
    CHECK_MESSAGE(ran.code == 0, ran.err);
    CHECK(ran.out.find("within tolerance") != std::string::npos);
  }
  // The folder also works through the environment. Other numbers of heads and other lengths have
  // the same kernel.
  const Outcome other =
      run_command("ANNULUS_KERNELS=" + into + " " + never +
                  "run --heads 3 --seq 200 --dim 32 --pattern causal" + on_device());
  CHECK_MESSAGE(other.code == 0, other.err);
  CHECK(other.out.find("disk, ") != std::string::npos);
  // A folder that is only read is not changed.
  CHECK(kernels_in(into) == first["kernels"]);
}

// Each of these commands fails because a kernel is missing. The fix in the error text must make it
// run.
TEST_CASE("the line of a missing kernel's error compiles it ahead") {
  const test::ScratchFolder folder;
  const std::string into = folder / "kernels";
  const std::string never = kNever;
  std::string options[] = {
      "-H 2 -S 64 -D 32 -p 'window(5, 3) | sink(2)'",
      "-H 4 --kv-heads 2 -B 2 -S 40 --seq-k 72 -D 64 --dtype fp16 -p causal --softcap 20",
      "-H 2 -S 64 -D 32 --q0 7 --k0 3 --score 'alibi([0.5, 0.25]), scale(0.3)'",
      "-H 1 -S 64 -D 192/128 -p 'strided(7, 2, 1)' --layer 3",
      "-H 1 -S 64 -D 32 --score 'score_mod(score + 0.5 * min(k - q, 0))'",
      "-H 1 -S 70 -D 32 -p 'random(2, 16, 5) & causal' --kv-splits 1",
      "-H 2 -S 64 -D 64 --config 'mma m128 n64 w4 s2 x2'",
      "-H 1 -S 64 -D 32 -p 'blocks(\"" + (folder / "a layout") + "\")'",
  };
  CHECK(annulus_with("pattern export -S 64 --block 16x16 -p causal '" + (folder / "a layout") + "'")
            .code == 0);
  for (const std::string& problem : options) {
    CAPTURE(problem);
    const std::string run =
        never + "run --no-check " + problem + " --kernels " + into + on_device();
    const Outcome missing = run_command(run);
    CHECK(missing.code == 4);
    const std::size_t begin = missing.err.find("the shape `");
    REQUIRE_MESSAGE(begin != std::string::npos, missing.err);
    const std::size_t from = begin + std::string("the shape `").size();
    const std::string line = missing.err.substr(from, missing.err.find("`.", from) - from);
    CAPTURE(line);
    const Outcome warmed = annulus_with("warm --shapes " + shapes_file(folder, line + "\n") +
                                        " --into " + into + on_device());
    CHECK_MESSAGE(warmed.code == 0, warmed.err);
    const Outcome ran = run_command(run);
    CHECK_MESSAGE(ran.code == 0, ran.err);
  }
}

TEST_CASE("a damaged line of a shape log costs only itself") {
  const test::ScratchFolder folder;
  const std::string log =
      shapes_file(folder,
                  "# annulus shapes 2\n--count 2 --heads 1 --seq 64 --dim 32 --pattern \"causal\n"
                  "--count 1 --heads 1 --seq 64 --dim 32 --pattern \"causal\"\n");
  const Outcome warmed =
      annulus_with("warm --json --shapes " + log + " --into " + (folder / "kernels") + on_device());
  CHECK(warmed.code == 0);
  CHECK(warmed.err.find("line 2 is left out: the quote \" of column") != std::string::npos);
  CHECK(base::parse_json(warmed.out, "warm")["kernels"] == 1);
}

TEST_CASE("kernels are compiled for GPUs that are not here") {
  const test::ScratchFolder folder;
  const std::string shapes = shapes_file(folder, "--heads 2 --seq 256 --dim 64 --pattern causal\n");
  const std::string into = folder / "kernels";
  const base::Json made = json_of("warm --json --shapes " + shapes + " --into " + into +
                                  " --device a100 --arch sm_90a --device sim:sm_80");
  CHECK(made["devices"] ==
        base::Json({"a100 (sm_80, cubin)", "sim:sm_80 (sm_80, ptx)", "h100 (sm_90a, cubin)",
                    "h200 (sm_90a, cubin)", "gh200 (sm_90a, cubin)", "h20 (sm_90a, cubin)"}));
  CHECK(made["failures"].empty());
  const base::Json listed = json_of("cache list --json --cache-dir " + into);
  REQUIRE(listed["folders"].size() == 1);
  std::string origins;
  for (const base::Json& set : listed["folders"][0]["sets"]) {
    origins += set["origin"].get<std::string>() + "\n";
    CHECK(set["bytes"] > 1000);
    CHECK(set["oldest"] <= set["newest"]);
  }
  CHECK(origins.find("sm_80, image cubin") != std::string::npos);
  CHECK(origins.find("compute_80, image ptx") != std::string::npos);
  CHECK(origins.find("sm_90a, image cubin") != std::string::npos);
  // Kernels for GPUs serve no device here, so only the simulated device's kernel stays.
  const base::Json pruned = json_of("cache prune --json --useless --dry-run --cache-dir " + into);
  CHECK(pruned["left"] == 1);
  CHECK(kernels_in(into) == made["kernels"]);
  CHECK(json_of("cache prune --json --useless --cache-dir " + into)["removed"] ==
        pruned["removed"]);
  CHECK(kernels_in(into) == 1);
}

TEST_CASE("a shape that does not fit a device costs only itself, and the exit code says so") {
  const test::ScratchFolder folder;
  const std::string into = folder / "kernels";
  const std::string shapes = shapes_file(
      folder, "--heads 2 --seq 64 --dim 64 --dtype e4m3\n--heads 2 --seq 64 --dim 64\n");
  const Outcome outcome =
      annulus_with("warm --shapes " + shapes + " --into " + into + " --device sim:sm_80");
  CHECK(outcome.code == 2);
  CHECK(outcome.out.find("failed     --heads 2 --seq 64 --dim 64 --dtype e4m3") !=
        std::string::npos);
  CHECK(kernels_in(into) == 1);
}

TEST_CASE("what a device has kept is compiled for another one of its architecture") {
  const test::ScratchFolder folder;
  const std::string kept = folder / "kept", into = folder / "kernels";
  for (const char* ranks : {"1", "2"}) {
    const Outcome ran =
        run_command("ANNULUS_CACHE_DIR=" + kept + " " + ANNULUS_PROGRAM +
                    " run -H 1 -S 64 -D 32 -p causal --device sim:sm_80 --ranks " + ranks);
    REQUIRE_MESSAGE(ran.code == 0, ran.err);
  }
  std::size_t kernels = 0;
  for (const auto& each : fs::directory_iterator(kept))
    kernels += each.path().extension() == ".kernel";
  REQUIRE(kernels >= 3);  // the ring's kernel that packs rows belongs to no shape
  std::ofstream(fs::path(kept) / "damaged.kernel") << "ANNULUSK";
  const std::string warm = "warm --json --from " + kept + " --into " + into;
  const base::Json made = json_of(warm + " --device a100");
  CHECK(made["compiled"] == kernels);
  CHECK(made["failures"].empty());
  // Kernels of another architecture are not included.
  CHECK(json_of(warm + " --device h100")["kernels"] == 0);
  // A kernel needs the same text as on a device that plans, so one folder serves both.
  const base::Json again =
      json_of("warm --json --shapes " +
              shapes_file(folder, "--heads 1 --seq 64 --dim 32 --pattern causal\n") + " --into " +
              into + " --device a100");
  CHECK(again["compiled"] == 0);
  CHECK(again["there"] == again["kernels"]);
  CHECK(again["kernels"] >= 1);
  refused("warm --from " + (folder / "nowhere") + " --into " + into, 5, "there is no folder");
}

TEST_CASE("warm refuses what it cannot use") {
  const test::ScratchFolder folder;
  const std::string into = " --into " + (folder / "kernels");
  const std::string shapes = " --shapes " + shapes_file(folder, "--heads 1 --seq 64 --dim 32\n");
  refused("warm" + into, 2, "--shapes");
  refused("warm --general --shapes ''" + into, 2, "an empty word is not a name");
  refused("warm" + shapes, 2, "--into");
  refused("warm --shapes /nonexistent" + into, 5, "/nonexistent");
  refused("warm" + shapes + into + " --device v100", 2, "a100 (sm_80)");
  refused("warm" + shapes + into + " --device sim:sm_80:77", 4, "there is no device");
  refused("warm" + shapes + into + " --threads -1", 2, "--threads");
  refused("warm" + shapes + " --into /proc/kernels --device a100", 5, "/proc/kernels");
  refused("warm --shapes " + shapes_file(folder, "--heads 1 --seed 3\n") + into, 5, "line 1");
  const std::string no_nvrtc = std::string("ANNULUS_LIBRARY_PATH=") + ANNULUS_USELESS_NVRTC_FOLDER +
                               " " + ANNULUS_PROGRAM + " ";
  shapes_file(folder, "--heads 1 --seq 64 --dim 32\n");
  const Outcome without = run_command(no_nvrtc + "warm" + shapes + into + " --device a100");
  CHECK(without.code == 4);
  CHECK(without.err.find("libnvrtc") != std::string::npos);
}

TEST_CASE("an interrupted warm keeps what is done, and goes on from there") {
  const test::ScratchFolder folder;
  const std::string into = folder / "kernels";
  // Masks are part of a kernel's text, so each of these patterns has a separate kernel.
  std::string lines;
  std::string pattern = "causal";
  for (int part = 1; part <= 40; ++part) {
    pattern += " | (window(" + std::to_string(part) + ", 0) & sink(3))";
    lines += "--heads 1 --seq 64 --dim 32 --pattern \"" + pattern + "\"\n";
  }
  const std::string warm = std::string(ANNULUS_PROGRAM) + " warm --threads 1 --shapes " +
                           shapes_file(folder, lines) + " --into " + into + on_device();
  const std::string out = folder / "out";
  // The process is interrupted once the first kernels exist.
  const Outcome outcome = run_command(
      "sh -c '" + warm + " > " + out + " & p=$!; i=0; while [ $(ls " + into +
      " 2>/dev/null | wc -l) -lt 2 ] && [ $i -lt 1200 ]; do i=$((i+1)); sleep 0.05; done; "
      "kill -INT $p; wait $p'");
  CHECK(outcome.code == 3);
  CHECK(test::read(out).find("left       ") != std::string::npos);
  const std::size_t done = kernels_in(into);
  CHECK(done >= 2);
  CHECK(done < 40);
  CHECK(json_of("cache verify --json --cache-dir " + into)["kernels"] == done);
}

TEST_CASE(
    "cache verify tells damaged kernels and removes them, and prune what is old or too much") {
  const test::ScratchFolder folder;
  const std::string into = folder / "kernels";
  const std::string at = " --cache-dir " + into;
  const std::string shapes = shapes_file(folder,
                                         "--heads 1 --seq 64 --dim 32\n"
                                         "--heads 1 --seq 64 --dim 64\n"
                                         "--heads 1 --seq 64 --dim 64 --pattern causal\n");
  CHECK(annulus_with("warm --shapes " + shapes + " --into " + into + on_device()).code == 0);
  CHECK(annulus_with("cache verify" + at).code == 0);
  std::vector<fs::path> files;
  for (const auto& each : fs::directory_iterator(into)) files.push_back(each.path());
  REQUIRE(files.size() == 3);
  const auto bytes = static_cast<std::int64_t>(fs::file_size(files[0]));
  std::fstream(files[0], std::ios::in | std::ios::out).seekp(bytes / 2) << "damage";
  fs::copy(files[1], into + "/\x1b[31m.kernel");
  const Outcome damaged = annulus_with("cache verify" + at);
  CHECK(damaged.code == 5);
  CHECK(damaged.out.find("its digest is wrong") != std::string::npos);
  CHECK(damaged.out.find("its name does not match its key") != std::string::npos);
  CHECK(damaged.out.find('\x1b') == std::string::npos);
  const base::Json removed = json_of("cache verify --json --remove" + at);
  CHECK(removed["kernels"] == 2);
  CHECK(removed["damaged"].size() == 2);
  CHECK(removed["damaged"][0]["removed"] == true);
  CHECK(kernels_in(into) == 2);

  refused("cache prune" + at, 2, "--older-than");
  refused("cache prune --max-bytes 5X" + at, 2, "'5X'");
  refused("cache prune --older-than yesterday" + at, 2, "'yesterday'");
  refused("cache verify --cache-dir " + (folder / "nothing"), 5, "there is no folder");
  refused("cache list --cache-dir", 2, "--cache-dir");
  CHECK(json_of("cache prune --json --older-than 1d" + at)["removed"] == 0);
  // One file is a day older than the other.
  fs::last_write_time(files[1], fs::last_write_time(files[2]) - std::chrono::hours(25));
  CHECK(json_of("cache prune --json --older-than 1d --dry-run" + at)["removed"] == 1);
  CHECK(json_of("cache prune --json --max-bytes 1G" + at)["removed"] == 0);
  const base::Json pruned =
      json_of("cache prune --json --max-bytes " + std::to_string(fs::file_size(files[2])) + at);
  CHECK(pruned["removed"] == 1);
  CHECK(pruned["problems"].empty());
  CHECK(fs::exists(files[2]));
  const Outcome text = annulus_with("cache list" + at);
  CHECK(text.code == 0);
  CHECK(text.out.find("1 kernels") != std::string::npos);
}

// An empty folder covers the toolkit's folder, in a separate mount namespace.
TEST_CASE("on a machine without NVRTC the program runs what was compiled ahead") {
  const test::ScratchFolder folder;
  fs::create_directory(folder / "empty");
  const std::string path =
      json_of("doctor --json" + on_device())["libraries"]["nvrtc"]["path"].get<std::string>();
  const std::string without = "unshare -rm sh -c 'mount --bind " + (folder / "empty") + " " +
                              fs::canonical(path).parent_path().string() + " && exec \"$@\"' sh ";
  if (run_command(without + "true").code != 0) {
    MESSAGE("no name space for mounts here");
    return;
  }
  const std::string into = folder / "kernels";
  const std::string shapes = shapes_file(folder, "--heads 2 --seq 96 --dim 32 --pattern causal\n");
  CHECK(annulus_with("warm --shapes " + shapes + " --into " + into + on_device()).code == 0);
  const std::string run = without +
                          "env ANNULUS_CACHE_DIR=none " ANNULUS_PROGRAM
                          " run --heads 2 --seq 96 --dim 32 --kernels " +
                          into + on_device();
  const Outcome ran = run_command(run + " --pattern causal");
  if (ran.err.find("NVRTC") == std::string::npos) {
    MESSAGE("another NVRTC is here");
    return;
  }
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK(ran.out.find("within tolerance") != std::string::npos);
  CHECK(std::ranges::count(ran.err, '\n') == 1);  // one warning
  const Outcome missing = run_command(run + " --pattern dense");
  CHECK(missing.code == 4);
  CHECK(missing.err.find("pip install nvidia-cuda-nvrtc") != std::string::npos);
  CHECK(missing.err.find("--heads 2 --seq 96 --dim 32 --pattern \"dense\"") != std::string::npos);
  const Outcome doctor =
      run_command(without + ANNULUS_PROGRAM " doctor --kernels " + into + on_device());
  CHECK(doctor.code == 0);
  CHECK(doctor.out.find("needed only to compile kernels that are not on disk") !=
        std::string::npos);
  CHECK(doctor.out.find("1 kernels, 1 for this device") != std::string::npos);
}

}  // namespace
