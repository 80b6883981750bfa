#ifndef ANNULUS_TESTS_FAULTS_FAILING_FILES_H_
#define ANNULUS_TESTS_FAULTS_FAILING_FILES_H_

// Stands before the calls of files in a program that links it, and makes those fail that
// libannulus.so itself makes: opening, reading, writing, syncing, renaming, removing, making
// folders, locking, examining, mapping and closing.

namespace annulus::test {

struct FileFault {
  int call = -1;          // counted from 0 at the call of begin_file_fault; -1: none, only count
  int code = 0;           // errno; 0: a read or a write moves 7 bytes at most
  bool for_good = false;  // this call and all later ones
};

void begin_file_fault(const FileFault& fault);
// Ends that, and returns how many calls were made.
int end_file_fault();
// The function that failed first; null where none did.
const char* failed_file_call();

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_FAULTS_FAILING_FILES_H_
