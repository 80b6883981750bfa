#include "program/run/launcher.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

#include "base/fail.h"
#include "base/hash.h"

namespace annulus::program {
namespace {

std::string variable(const char* name) {
  const char* const text = name == nullptr ? nullptr : std::getenv(name);
  return text == nullptr ? "" : text;
}

int number_in(const char* name) {
  const std::string text = variable(name);
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    base::fail(ErrorCode::kInvalidArgument, "{} is '{}', which is not a whole number from 0 on",
               name, text);
  }
  return value;
}

// A function that chooses a port. It returns the same port on all ranks, and other programs are
// unlikely to use that port.
using ChoosePort = int (*)();

constexpr int kPorts = 65536;

// MASTER_PORT itself is taken: the launcher's own store listens on it, on the same host.
int beside_master_port() {
  constexpr int kBeside = 1000;
  const int port = number_in("MASTER_PORT");
  if (port < 1 || port >= kPorts) {
    base::fail(ErrorCode::kInvalidArgument, "MASTER_PORT is {}, which is not a port", port);
  }
  return port + kBeside < kPorts ? port + kBeside : port - kBeside;
}

// The ports from 10000 to 29999 are below the ports that Linux gives to clients.
int port_of_step() {
  constexpr int kFirst = 10000, kCount = 20000;
  const base::Digest digest =
      base::digest(variable("SLURM_JOB_ID") + "." + variable("SLURM_STEP_ID"));
  return kFirst + (digest.bytes[0] << 16 | digest.bytes[1] << 8 | digest.bytes[2]) % kCount;
}

struct Launcher {
  const char* name;
  const char* rank;
  const char* ranks;
  const char* on_host;
  // The host of rank 0, and the variables from which its port is computed. Null if the launcher
  // sets no variable for the host.
  const char* host;
  std::vector<const char*> port_of;
  ChoosePort port;
  // Variables that together identify the job among all current jobs. They may be unset.
  std::vector<const char*> job;
};

// The first launcher whose variables are all set is chosen. A launcher later in the list may have
// started that launcher, or its job.
const Launcher kLaunchers[] = {
    {"torchrun",
     "RANK",
     "WORLD_SIZE",
     "LOCAL_RANK",
     "MASTER_ADDR",
     {"MASTER_PORT"},
     beside_master_port,
     {"TORCHELASTIC_RUN_ID"}},
    {"mpirun of Open MPI",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK",
     nullptr,
     {},
     nullptr,
     {"PMIX_NAMESPACE"}},
    {"mpirun of MPICH or Intel MPI",
     "PMI_RANK",
     "PMI_SIZE",
     "MPI_LOCALRANKID",
     nullptr,
     {},
     nullptr,
     {"PMI_JOBID"}},
    {"srun",
     "SLURM_PROCID",
     "SLURM_NTASKS",
     "SLURM_LOCALID",
     "SLURM_LAUNCH_NODE_IPADDR",
     {"SLURM_JOB_ID", "SLURM_STEP_ID"},
     port_of_step,
     {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
};

// "A, B and C"
std::string listed(const std::vector<const char*>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    text += i == 0 ? "" : i + 1 < names.size() ? ", " : " and ";
    text += names[i];
  }
  return text;
}

std::vector<const char*> missing_of(const std::vector<const char*>& names) {
  std::vector<const char*> missing;
  for (const char* name : names) {
    if (variable(name).empty()) missing.push_back(name);
  }
  return missing;
}

std::vector<const char*> place_of(const Launcher& launcher) {
  return {launcher.rank, launcher.ranks, launcher.on_host};
}

// The first launcher that sets all variables of a rank's place.
const Launcher& who_launched() {
  const Launcher* begun = nullptr;
  for (const Launcher& launcher : kLaunchers) {
    const std::vector<const char*> missing = missing_of(place_of(launcher));
    if (missing.empty()) return launcher;
    if (begun == nullptr && missing.size() < place_of(launcher).size()) begun = &launcher;
  }
  if (begun != nullptr) {
    const std::vector<const char*> missing = missing_of(place_of(*begun));
    base::fail(ErrorCode::kInvalidArgument,
               "{} {} missing, but other variables of {} are set: {} together give the number of "
               "this rank",
               listed(missing), missing.size() == 1 ? "is" : "are", begun->name,
               listed(place_of(*begun)));
  }
  std::vector<const char*> ranks;
  for (const Launcher& launcher : kLaunchers) ranks.push_back(launcher.rank);
  base::fail(ErrorCode::kInvalidArgument,
             "--ranks env is for a process that torchrun, mpirun or srun has started; none of {} "
             "is set",
             listed(ranks));
}

std::string address_of(const Launcher& launcher, const std::string& rendezvous) {
  if (!rendezvous.empty()) return rendezvous;
  constexpr const char* kAsk = "give --rendezvous tcp:HOST:PORT of rank 0, or file:PATH";
  if (launcher.host == nullptr) {
    base::fail(ErrorCode::kInvalidArgument, "{} does not set an address where ranks meet; {}",
               launcher.name, kAsk);
  }
  std::vector<const char*> needed = launcher.port_of;
  needed.insert(needed.begin(), launcher.host);
  const std::vector<const char*> missing = missing_of(needed);
  if (!missing.empty()) {
    base::fail(ErrorCode::kInvalidArgument,
               "{} {} not set, so the address where ranks meet is unknown; {}", listed(missing),
               missing.size() == 1 ? "is" : "are", kAsk);
  }
  const std::string host = variable(launcher.host);
  const bool ipv6 = host.find(':') != std::string::npos && !host.starts_with('[');
  return fmt::format("tcp:{}:{}", ipv6 ? "[" + host + "]" : host, launcher.port());
}

// The digest gives the token a permitted length, whatever names the launcher gives its jobs.
std::string token_of(const Launcher& launcher) {
  std::string job;
  for (const char* name : launcher.job) job += variable(name) + ".";
  return "annulus-run-" + base::digest(launcher.name + job).hex();
}

}  // namespace

Seat launched_seat(const std::string& rendezvous) {
  const Launcher& launcher = who_launched();
  Seat seat;
  seat.rank = number_in(launcher.rank);
  seat.ranks = number_in(launcher.ranks);
  seat.on_host = number_in(launcher.on_host);
  const auto below = [&](int number, const char* name) {
    if (number < seat.ranks) return;
    base::fail(ErrorCode::kInvalidArgument, "{} is {} and {} is {}; ranks count from 0", name,
               number, launcher.ranks, seat.ranks);
  };
  below(seat.rank, launcher.rank);
  below(seat.on_host, launcher.on_host);
  if (seat.ranks == 1) return seat;
  seat.address = address_of(launcher, rendezvous);
  seat.token = token_of(launcher);
  return seat;
}

}  // namespace annulus::program
