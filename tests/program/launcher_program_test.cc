// annulus run --ranks env: processes with the variables of each launcher must give the same results
// as ranks that the program starts itself.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "program/run_program.h"

namespace {

using namespace annulus;
using test::json_of;
using test::on_device;
using test::Outcome;
using test::read;

constexpr int kRanks = 3;

// Removes the variables of a launcher that may run the tests.
constexpr const char* kClean =
    "env -u RANK -u WORLD_SIZE -u LOCAL_RANK -u MASTER_ADDR -u MASTER_PORT -u TORCHELASTIC_RUN_ID "
    "-u OMPI_COMM_WORLD_RANK -u OMPI_COMM_WORLD_SIZE -u OMPI_COMM_WORLD_LOCAL_RANK "
    "-u PMIX_NAMESPACE -u PMI_RANK -u PMI_SIZE -u MPI_LOCALRANKID -u PMI_JOBID -u SLURM_PROCID "
    "-u SLURM_NTASKS -u SLURM_LOCALID -u SLURM_JOB_ID -u SLURM_STEP_ID "
    "-u SLURM_LAUNCH_NODE_IPADDR ";

Outcome launched(const std::string& variables, const std::string& options) {
  return test::run_command(kClean + variables + " " + ANNULUS_PROGRAM + " " + options);
}

// A port on which no program listens now.
int free_port() {
  const int socket_number = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  REQUIRE(bind(socket_number, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  REQUIRE(getsockname(socket_number, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  close(socket_number);
  return ntohs(address.sin_port);
}

// Replaces every "{}" by the rank.
std::string with_rank(std::string text, int rank) {
  for (std::size_t at; (at = text.find("{}")) != std::string::npos;) {
    text.replace(at, 2, std::to_string(rank));
  }
  return text;
}

std::vector<Outcome> launch(int ranks, const std::string& variables, const std::string& options) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      outcomes[static_cast<std::size_t>(rank)] = launched(with_rank(variables, rank), options);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

const std::string kProblem =
    "run --json --heads 2 --seq 300 --dim 64 --pattern 'causal & window(70,0)'";

TEST_CASE("a rank under a launcher computes what --processes does, and rank 0 tells it") {
  if (!test::on_simulator()) return;
  const test::ScratchFolder folder;
  const std::string problem = kProblem + on_device();
  const base::Json started =
      json_of(problem + " --ranks 3 --processes -o " + (folder / "started.safetensors"));
  const int master = free_port() - 1000;
  const struct {
    const char* name;
    std::string variables;
    std::string options;
  } cases[] = {
      {"torchrun",
       "RANK={} WORLD_SIZE=3 LOCAL_RANK={} MASTER_ADDR=127.0.0.1 MASTER_PORT=" +
           std::to_string(master) + " TORCHELASTIC_RUN_ID=a-long-name-of-a-run",
       ""},
      {"torchrun in a step of Slurm",
       "SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_LOCALID=0 RANK={} WORLD_SIZE=3 LOCAL_RANK={}",
       " --rendezvous tcp:localhost:" + std::to_string(free_port())},
      {"Open MPI",
       "OMPI_COMM_WORLD_RANK={} OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_LOCAL_RANK={} "
       "PMIX_NAMESPACE=prterun-7",
       " --rendezvous file:" + (folder / "meeting")},
      {"MPICH", "PMI_RANK={} PMI_SIZE=3 MPI_LOCALRANKID={}",
       " --rendezvous file:" + (folder / "another")},
      {"Slurm",
       "SLURM_PROCID={} SLURM_NTASKS=3 SLURM_LOCALID={} SLURM_STEP_ID=2 "
       "SLURM_LAUNCH_NODE_IPADDR=127.0.0.1 SLURM_JOB_ID=" +
           std::to_string(getpid()),
       ""},
      // srun --mpi=pmi2 sets some variables of another launcher too.
      {"Slurm with PMI",
       "PMI_RANK={} PMI_SIZE=3 SLURM_PROCID={} SLURM_NTASKS=3 SLURM_LOCALID={} SLURM_JOB_ID=1",
       " --rendezvous file:" + (folder / "third")},
  };
  for (const auto& one : cases) {
    CAPTURE(one.name);
    const std::string output = folder / "launched.safetensors";
    const std::vector<Outcome> outcomes =
        launch(kRanks, one.variables, problem + " --ranks env" + one.options + " -o " + output);
    for (const Outcome& outcome : outcomes) CHECK_MESSAGE(outcome.code == 0, outcome.err);
    CHECK(outcomes[1].out.empty());
    CHECK(outcomes[2].out.empty());
    if (outcomes[0].code != 0) continue;
    const base::Json told = base::parse_json(outcomes[0].out, "the output of rank 0");
    for (const char* key :
         {"ranks", "processes", "transport", "rank_devices", "kernel", "config", "launches",
          "bytes_sent", "bytes_needed", "rounds", "messages", "peak_bytes_per_rank",
          "predicted_micros", "within_law", "max_difference_from_one_rank"}) {
      CAPTURE(key);
      CHECK(told[key] == started[key]);
    }
    CHECK(told["counters"]["launches"] == started["counters"]["launches"]);
    CHECK(told["within_law"] == true);
    CHECK(read(output) == read(folder / "started.safetensors"));
  }
  CHECK(started["rank_devices"].size() == kRanks);
  CHECK(started["rank_devices"][1] != started["rank_devices"][2]);
}

TEST_CASE("one process under a launcher needs nobody") {
  const base::Json told = base::parse_json(
      launched("RANK=0 WORLD_SIZE=1 LOCAL_RANK=0", kProblem + on_device() + " --ranks env").out,
      "the output of a rank alone");
  CHECK(told["ranks"] == 1);
  CHECK(told["within_law"] == true);
}

TEST_CASE("a device that is named by its number is the rank's, whatever the launcher says") {
  if (!test::on_simulator()) return;
  const test::ScratchFolder folder;
  std::vector<Outcome> outcomes(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const std::string number = std::to_string(rank);
      outcomes[static_cast<std::size_t>(rank)] =
          launched("PMI_RANK=" + number + " PMI_SIZE=2 MPI_LOCALRANKID=0",
                   kProblem + " --no-check --ranks env --rendezvous file:" + (folder / "meeting") +
                       " --device sim:sm_80:" + std::to_string(5 - rank));
    });
  }
  for (std::thread& thread : threads) thread.join();
  REQUIRE_MESSAGE(outcomes[0].code == 0, outcomes[0].err);
  const base::Json told = base::parse_json(outcomes[0].out, "the output of rank 0");
  CHECK(told["rank_devices"] == base::Json{"sim:sm_80:5", "sim:sm_80:4"});
}

TEST_CASE("variables that are missing or contradict each other are named") {
  const std::string run = "run -S 64 --no-check --ranks env" + on_device();
  const struct {
    const char* variables;
    const char* options;
    const char* part;
  } cases[] = {
      {"", "", "none of RANK, OMPI_COMM_WORLD_RANK, PMI_RANK and SLURM_PROCID is set"},
      {"RANK=1", "", "WORLD_SIZE and LOCAL_RANK are missing"},
      {"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2", "",
       "OMPI_COMM_WORLD_LOCAL_RANK is missing, but other variables of mpirun of Open MPI are set"},
      {"RANK=3 WORLD_SIZE=3 LOCAL_RANK=0", "", "RANK is 3 and WORLD_SIZE is 3"},
      {"PMI_RANK=0 PMI_SIZE=2 MPI_LOCALRANKID=2", "", "MPI_LOCALRANKID is 2 and PMI_SIZE is 2"},
      {"RANK=one WORLD_SIZE=3 LOCAL_RANK=0", "", "RANK is 'one', which is not a whole number"},
      {"RANK=0 WORLD_SIZE=-3 LOCAL_RANK=0", "", "WORLD_SIZE is '-3', which is not a whole number"},
      {"RANK=0 WORLD_SIZE=0 LOCAL_RANK=0", "", "RANK is 0 and WORLD_SIZE is 0"},
      {"RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 MASTER_ADDR=localhost", "",
       "MASTER_PORT is not set, so the address where ranks meet is unknown; give --rendezvous"},
      {"RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 MASTER_ADDR=localhost MASTER_PORT=65536", "",
       "MASTER_PORT is 65536, which is not a port"},
      {"PMI_RANK=0 PMI_SIZE=2 MPI_LOCALRANKID=0", "",
       "mpirun of MPICH or Intel MPI does not set an address where ranks meet; give --rendezvous"},
      {"SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_LOCALID=0 SLURM_JOB_ID=4", "",
       "SLURM_LAUNCH_NODE_IPADDR and SLURM_STEP_ID are not set"},
      {"RANK=0 WORLD_SIZE=2 LOCAL_RANK=0", " --rendezvous there", "there"},
      {"RANK=0 WORLD_SIZE=2 LOCAL_RANK=0", " --processes", "--processes does not go with"},
      {"RANK=0 WORLD_SIZE=2 LOCAL_RANK=0", " --picture x.svg",
       "--picture needs all ranks in one process"},
  };
  for (const auto& one : cases) {
    CAPTURE(one.variables);
    const Outcome outcome = launched(one.variables, run + one.options);
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    CHECK_MESSAGE(outcome.err.find(one.part) != std::string::npos, outcome.err);
  }
  test::refused("run -S 64 --ranks 2 --rendezvous file:x" + on_device(), 2,
                "--rendezvous needs --ranks env");
  // The error comes before operands are made, for which no machine has enough memory.
  test::refused("run -H 4096 -S 100000000 --dtype e4m3 --ranks 2" + on_device(), 2,
                "a ring has no scales");
  test::refused("run -S 64 --ranks two" + on_device(), 2,
                "neither a number from 1 to 4096 nor env");
}

TEST_CASE("a rank that does not come is named within the deadline") {
  const auto start = std::chrono::steady_clock::now();
  const test::ScratchFolder folder;
  const Outcome alone = launched(
      "RANK=0 WORLD_SIZE=3 LOCAL_RANK=0",
      "run -S 64 --no-check --ranks env --deadline 300 --rendezvous file:" + (folder / "meeting") +
          on_device());
  CHECK(alone.code == 4);
  CHECK(alone.out.empty());
  CHECK_MESSAGE(alone.err.find("ranks 1 and 2 of 3") != std::string::npos, alone.err);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
}

}  // namespace
