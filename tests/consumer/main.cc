// Uses the installed headers and library like a user's program: patterns, an error, the version.

#include <annulus/pattern.h>
#include <annulus/types.h>
#include <annulus/version.h>

#include <cstdio>
#include <string>

int main() {
  static_assert(ANNULUS_VERSION >= 100, "the installed headers are older than version 0.1");
  const annulus::Pattern pattern = annulus::causal() & (annulus::window(3, 0) | annulus::sink(1));
  if (!pattern.visible(0, 9, 0) || pattern.visible(0, 9, 5) || !pattern.visible(0, 9, 6)) return 1;
  try {
    annulus::Pattern::parse("causal & nonsense");
    return 1;
  } catch (const annulus::Error& error) {
    // An exception of the library is caught by its type across the boundary of the shared library.
    std::printf("%s: %s: %s\n", pattern.to_string().c_str(), annulus::to_string(error.code()),
                error.what());
    return 0;
  }
}
