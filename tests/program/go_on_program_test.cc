// annulus run --go-on: the process of a rank is killed during a run, and the remaining ranks give
// the same bits as a ring without that rank.
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "program/run_program.h"

namespace {

using namespace annulus;
using test::on_device;
using test::Outcome;
using test::read;

const std::string kAttention =
    "run --json --no-check --heads 2 --seq 300 --dim 64 --pattern 'causal & window(70,0)'";
// Runs that take seconds together. The first of them end early.
const std::string kManyRuns = kAttention + " --repeat 60 --deadline 20000 --go-on --verbose";

// Waits until a file contains a text, long enough for a busy machine.
bool has_come(const std::string& file, const std::string& text) {
  for (int i = 0; i < 6000; ++i) {
    if (read(file).find(text) != std::string::npos) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

// The process whose command line contains a text, or 0.
pid_t process_with(const std::string& text) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const int process = std::atoi(entry.path().filename().c_str());
    if (process > 0 && read(entry.path() / "cmdline").find(text) != std::string::npos) {
      return process;
    }
  }
  return 0;
}

// The output that two ranks save when they run alone.
std::string bits_of_two() {
  const test::ScratchFolder folder;
  const Outcome fresh = test::annulus_with(kAttention + on_device() + " --ranks 2 --processes -o " +
                                           (folder / "fresh.safetensors"));
  CHECK_MESSAGE(fresh.code == 0, fresh.err);
  return read(folder / "fresh.safetensors");
}

void check_survived(const std::string& json, int killed) {
  const base::Json told = base::parse_json(json, "the output of who is rank 0 now");
  CHECK(told["ranks"] == 2);
  CHECK(told["processes"] == 2);
  CHECK(told["generation"] == 2);
  bool blamed = false;
  for (const base::Json& event : told["events"]) {
    if (event["kind"] != "given up") continue;
    blamed = true;
    CHECK(event["generation"] == 1);
    CHECK(event["ranks"] == std::vector<int>{killed});
  }
  CHECK(blamed);
}

TEST_CASE("two of three launched ranks go on, whichever was killed") {
  if (!test::on_simulator()) return;
  const std::string fresh = bits_of_two();
  for (const int killed : {0, 2}) {
    CAPTURE(killed);
    const test::ScratchFolder folder;
    const auto file = [&](const char* name, int rank) {
      return folder / (name + std::to_string(rank));
    };
    std::vector<Outcome> outcomes(3);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 3; ++rank) {
      threads.emplace_back([&, rank] {
        const std::string number = std::to_string(rank);
        outcomes[static_cast<std::size_t>(rank)] = test::run_command(
            "env PMI_RANK=" + number + " PMI_SIZE=3 MPI_LOCALRANKID=" + number +
            " sh -c 'echo $$ >" + file("pid", rank) + "; exec \"$0\" \"$@\" 2>" +
            file("err", rank) + "' " + ANNULUS_PROGRAM + " " + kManyRuns + on_device() +
            " --ranks env --rendezvous file:" + (folder / "meeting") + " -o " +
            (folder / "left.safetensors"));
      });
    }
    const bool began =
        has_come(file("err", killed), "rank " + std::to_string(killed) + " of a ring of 3");
    const pid_t process = std::atoi(read(file("pid", killed)).c_str());
    if (process > 0) kill(process, SIGKILL);
    for (std::thread& thread : threads) thread.join();
    REQUIRE(began);
    for (int rank = 0; rank < 3; ++rank) {
      const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
      if (rank == killed) continue;
      CHECK_MESSAGE(outcome.code == 0, read(file("err", rank)));
      if (rank == (killed == 0 ? 1 : 0)) {
        check_survived(outcome.out, killed);
      } else {
        CHECK(outcome.out.empty());
      }
    }
    CHECK(read(folder / "left.safetensors") == fresh);
  }
}

TEST_CASE("a rank that was started is killed, and the program goes on") {
  if (!test::on_simulator()) return;
  const test::ScratchFolder folder;
  const std::string output = folder / "left.safetensors";
  Outcome outcome;
  std::thread thread([&] {
    outcome = test::run_command("sh -c 'exec \"$0\" \"$@\" 2>" + (folder / "err") + "' " +
                                ANNULUS_PROGRAM + " " + kManyRuns + on_device() +
                                " --ranks 3 --processes -o " + output);
  });
  const bool began = has_come(folder / "err", "rank 1 of a ring of 3");
  // Words of a command line in /proc end with zero bytes.
  const pid_t process = process_with(output + std::string(1, '\0') + "--seat=1:");
  if (process > 0) kill(process, SIGKILL);
  thread.join();
  REQUIRE(began);
  REQUIRE(process > 0);
  REQUIRE_MESSAGE(outcome.code == 0, read(folder / "err"));
  CHECK(read(folder / "err").find("rank 1 was ended by signal 9") != std::string::npos);
  check_survived(outcome.out, 1);
  CHECK(read(output) == bits_of_two());
}

TEST_CASE("nobody goes on where ranks are threads of one process") {
  test::refused("run -S 64 --ranks 2 --go-on" + on_device(), 2, "--go-on needs --processes");
}

}  // namespace
