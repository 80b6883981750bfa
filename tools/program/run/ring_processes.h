#ifndef ANNULUS_PROGRAM_RUN_RING_PROCESSES_H_
#define ANNULUS_PROGRAM_RUN_RING_PROCESSES_H_

// annulus run --ranks P --processes: this process is rank 0 and starts the others, which are this
// program with the same command line and a seat. They meet by a file of a folder that rank 0 makes
// and removes.

#include "program/run/rank_run.h"
#include "program/run/run.h"

namespace annulus::program {

// As rank 0, which starts the others and waits for them. Throws where one of them fails, naming it.
RingAnswer compute_ring_of_processes(const Device& first, const RunArguments& arguments,
                                     const ProblemInput& input);

// The seat of a rank that was started: `text` is its --seat.
Seat started_seat(const std::string& text, int ranks);

// The command line of this process, for those that it starts. Called by main().
void remember_command_line(int count, char** words);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_RUN_RING_PROCESSES_H_
