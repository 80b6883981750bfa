#ifndef ANNULUS_PROGRAM_RUN_RING_PROCESSES_H_
#define ANNULUS_PROGRAM_RUN_RING_PROCESSES_H_

// annulus run --ranks P --processes: this process is rank 0 and starts the other ranks. They run
// the same program with the same command line and --seat. The ranks meet through a file in a folder
// that rank 0 makes and removes.

#include "program/run/rank_run.h"
#include "program/run/run.h"

namespace annulus::program {

// Runs as rank 0: starts the other ranks and waits for them. Throws an error that names the rank if
// one fails.
RingAnswer compute_ring_of_processes(const Device& first, const RunArguments& arguments,
                                     const ProblemInput& input);

// The seat of a started rank. `text` is the value of its --seat.
Seat started_seat(const std::string& text, int ranks);

// Stores the command line of this process for the processes that it starts. main() calls it.
void remember_command_line(int count, char** words);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_RUN_RING_PROCESSES_H_
