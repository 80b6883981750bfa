#ifndef ANNULUS_TESTS_SUPPORT_RECORDED_USAGES_H_
#define ANNULUS_TESTS_SUPPORT_RECORDED_USAGES_H_

// The registers and the memory of kernels, as NVRTC and ptxas report them. A committed file keeps
// them for compiled kernels, because NVRTC needs minutes for all kernels that ship.
//
// The file finds a kernel by a digest of its specialised source, the templates that this source
// includes (without their comments), the compiler's options and NVRTC's identity. So a kernel is
// compiled again if any of these changes.
//
// After a change of kernels the test fails until their record is renewed:
//   build/tests/test_NAME --record yes      compiles the kernels that the file lacks and rewrites it

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "abi/libraries.h"
#include "jit/compiler.h"
#include "jit/disk_cache.h"
#include "jit/resource_usage.h"

namespace annulus::test {

class RecordedUsages {
 public:
  // `file` is the record's path. There is one object for each file in a process.
  RecordedUsages(std::string file, std::shared_ptr<const abi::NvrtcLibrary> nvrtc);

  // Whether the file has kernels of this NVRTC. If it has none, every kernel is compiled and
  // nothing has to be recorded.
  bool knows_nvrtc() const { return knows_nvrtc_; }

  // The usage of a kernel, from the file or by compiling it. Any thread may call it.
  jit::ResourceUsage of(jit::KernelSpec spec);

  // Fails the running test case if kernels were compiled because the file lacks them. With --record
  // it writes the file instead, with the kernels of this process and the lines of other NVRTC
  // versions.
  void finish();

 private:
  // A compiler that has only the template `file` and the files that it includes.
  const jit::Compiler& compiler_for(const std::string& file);

  const std::string file_;
  const std::shared_ptr<const abi::NvrtcLibrary> nvrtc_;
  std::string identity_;
  bool knows_nvrtc_ = false;
  std::map<std::string, std::map<std::string, std::string>> recorded_;  // NVRTC, digest, usage
  jit::DiskCache disk_;  // keeps compiled kernels for the next run, while a kernel is being changed

  std::mutex mutex_;  // guards the members below
  std::map<std::string, std::unique_ptr<const jit::Compiler>> compilers_;  // by template
  std::map<std::string, std::string> used_;                                // digest, usage
  std::set<std::string> missing_;  // names of kernels that were compiled
};

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_SUPPORT_RECORDED_USAGES_H_
