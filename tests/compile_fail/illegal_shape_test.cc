// Invalid template arguments must not compile, and the compiler must print the reason.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "annulus/types.h"
#include "attention/kernels/kernel_source.h"
#include "attention/kernels/mma/config.h"
#include "jit/compiler.h"
#include "support/nvrtc.h"

namespace annulus::attention {
namespace {

struct Illegal {
  MmaConfig config;
  Dims dims;
  const char* sentence;
};

TEST_CASE("an illegal shape is refused with a sentence") {
  const auto library = test::nvrtc();
  if (!library) return;
  const jit::Compiler compiler(library, jit::TemplateSet::embedded(), jit::ImageKind::kPtx);
  const std::vector<Illegal> illegal = {
      {{.tile_rows = 72}, {64, 64}, "the rows of a tile must be a multiple of 16 for each warp"},
      {{.tile_columns = 24}, {64, 64}, "the columns of a tile must be a multiple of 16"},
      {{.tile_columns = 144}, {64, 64}, "the columns of a tile must be a multiple of 16"},
      {{.stages = 5}, {64, 64}, "a pipeline has one to four stages"},
      {{}, {64, 128}, "Dv must not exceed Dqk"},
      {{}, {80, 64}, "a head dim must be a multiple of 32 from 32 to 256"},
      {{}, {288, 64}, "a head dim must be a multiple of 32 from 32 to 256"},
      {{.tile_rows = 16, .warps = 1}, {64, 64}, "use at least two warps"},
      {{.tile_rows = 128, .tile_columns = 32, .warps = 8},
       {96, 96},
       "the rows of a tile must be a multiple of the rows of one pass"},
  };
  for (const Illegal& at : illegal) {
    CAPTURE(at.sentence);
    std::string message;
    try {
      compiler.compile(kernel_spec(at.config, {.dims = at.dims}, {80, '\0'}));
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kCompile);
      message = error.what();
    }
    // The log breaks long lines.
    std::erase(message, '\n');
    CAPTURE(message);
    CHECK(message.find(at.sentence) != std::string::npos);
  }
}

}  // namespace
}  // namespace annulus::attention
