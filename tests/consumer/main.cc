// Uses the installed headers and library as a stranger would: a value, an error, the version.

#include <annulus/error.h>
#include <annulus/version.h>

#include <cstdio>
#include <cstring>

int main() {
  static_assert(ANNULUS_VERSION >= 100, "the installed headers are older than version 0.1");
  try {
    throw annulus::Error(annulus::ErrorCode::kParse, "column 3");
  } catch (const annulus::Error& error) {
    std::printf("%s: %s\n", annulus::to_string(error.code()), error.what());
    return error.code() == annulus::ErrorCode::kParse && !std::strcmp(error.what(), "column 3") ? 0
                                                                                                : 1;
  }
}
