#include "jit/missing_kernel.h"

#include <algorithm>
#include <utility>

#include "abi/libraries.h"
#include "base/fail.h"
#include "base/join.h"
#include "base/of_thread.h"

namespace annulus::jit {
namespace {

ANNULUS_THREAD_LOCAL const KernelsFor* innermost_of_thread = nullptr;

// For example "kernels: 12, of this version for compute_80: 3".
std::string contents(const std::vector<ListedKernel>& kernels, const KernelOrigin& wanted) {
  const auto serving = std::ranges::count_if(kernels, [&](const ListedKernel& kernel) {
    return kernel.origin && serves(*kernel.origin, wanted);
  });
  return fmt::format("kernels: {}, of this version for {}: {}", kernels.size(), wanted.architecture,
                     serving);
}

// The places where a kernel was searched for, with their contents.
std::string places(const KernelOrigin& wanted, DiskCache& disk, KernelFolders& folders) {
  std::vector<std::string> places;
  for (const KernelFolders::Described& each : folders.describe()) {
    places.push_back(fmt::format("'{}' ({})", each.folder,
                                 !each.there            ? "which does not exist"
                                 : each.problem.empty() ? contents(each.kernels, wanted)
                                                        : each.problem));
  }
  if (disk.usable()) {
    places.push_back(
        fmt::format("the cache '{}' ({})", disk.options().folder, contents(disk.list(), wanted)));
  } else {
    places.push_back(fmt::format("no cache: {}", disk.problem()));
  }
  return base::join(places, ", ");
}

}  // namespace

KernelsFor::KernelsFor(Describe describe)
    : describe_(std::move(describe)), outer_(std::exchange(innermost_of_thread, this)) {}

KernelsFor::~KernelsFor() { innermost_of_thread = outer_; }

std::string KernelsFor::innermost() noexcept {
  if (innermost_of_thread == nullptr) return "";
  try {
    return innermost_of_thread->describe_();
  } catch (...) {
    return "";
  }
}

void fail_missing(const KernelSpec& spec, const Compiler& compiler, DiskCache& disk,
                  KernelFolders& folders, const std::string& refused) {
  std::string text =
      fmt::format("there is no compiled kernel {}{} for {}", spec.family,
                  spec.config.empty() ? "" : " (" + spec.config + ")", to_string(spec.arch));
  const std::string wanted = KernelsFor::innermost();
  if (!wanted.empty()) text += fmt::format(", which is wanted for {}", wanted);
  text +=
      fmt::format(". It was looked for in {}. ", places(compiler.origin(spec.arch), disk, folders));
  if (!refused.empty()) {
    text += fmt::format("The driver refuses the one that was found: {}. ", refused);
  }
  text += fmt::format("It cannot be compiled: {}", compiler.problem());
  // Most problems already state a remedy.
  if (!compiler.problem().ends_with(abi::compile_ahead_remedy())) {
    text += "; " + abi::nvrtc_remedies();
  }
  throw Error(ErrorCode::kLibrary, text);
}

}  // namespace annulus::jit
