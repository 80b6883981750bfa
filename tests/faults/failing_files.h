#ifndef ANNULUS_TESTS_FAULTS_FAILING_FILES_H_
#define ANNULUS_TESTS_FAULTS_FAILING_FILES_H_

// Replaces the file functions in a program that links this file, and makes calls from libannulus.so
// fail. The functions open, read, write, sync, rename, remove, make folders, lock, examine, map and
// close.

namespace annulus::test {

struct FileFault {
  int call = -1;          // counted from 0 since begin_file_fault(); -1: count only
  int code = 0;           // errno; 0: a read or a write moves at most 7 bytes
  bool for_good = false;  // this call and all later calls fail
};

void begin_file_fault(const FileFault& fault);
// Ends the fault, and returns the number of calls that were made.
int end_file_fault();
// The first function that failed. Null if none did.
const char* failed_file_call();

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_FAULTS_FAILING_FILES_H_
