#ifndef ANNULUS_PROGRAM_RING_PROCESSES_H_
#define ANNULUS_PROGRAM_RING_PROCESSES_H_

// annulus run --ranks P --processes: this process is rank 0 and starts the others, which are this
// program with the same command line and a seat. Each has a device of its own and exchanges rows
// with the others over NCCL. What a rank computed comes back in a file of a folder that rank 0
// makes and removes.

#include "program/ring_run.h"

namespace annulus::program {

// As rank 0, which has started the others and waits for them. Throws where one of them fails,
// naming it.
RingAnswer compute_ring_of_processes(const Device& first, const RunArguments& arguments,
                                     const ProblemInput& input);

// As a rank that was started. Throws where it fails.
void run_seat(const RunArguments& arguments, const ProblemInput& input);

// The command line of this process, for those that it starts. Called by main().
void remember_command_line(int count, char** words);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_RING_PROCESSES_H_
