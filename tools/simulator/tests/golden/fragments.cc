#include "golden/fragments.h"

#include <fmt/core.h>

namespace annulus::golden {

u32 record_word(Words in, int lane, int index) {
  const u64 pair = in[static_cast<std::size_t>(lane * kRecord + index) / 2];
  return static_cast<u32>(index % 2 ? pair >> 32 : pair);
}

void set_record_word(std::vector<u64>& in, int lane, int index, u32 value) {
  u64& pair = in[static_cast<std::size_t>(lane * kRecord + index) / 2];
  const int shift = index % 2 * 32;
  pair = (pair & ~(0xffffffffull << shift)) | static_cast<u64>(value) << shift;
}

std::string mma_program(const std::string& version, const std::string& target,
                        const std::string& form, const FragmentRegisters& registers) {
  const auto list = [](char name, int count) {
    std::string text = "{";
    for (int i = 0; i < count; ++i) text += fmt::format("{}{}{}", i ? ", " : "", name, i);
    return text + "}";
  };
  const auto load = [](char name, int count, int first) {
    std::string text;
    for (int i = 0; i < count; ++i)
      text += fmt::format("  ld.global.b32 {}{}, [src+{}];\n", name, i, (first + i) * 4);
    return text;
  };
  std::string stores;
  for (int i = 0; i < registers.c; ++i)
    stores += fmt::format("  st.global.b32 [dst+{}], d{};\n", i * 4, i);
  return ".version " + version + "\n.target " + target +
         "\n.address_size 64\n\n"
         ".visible .entry golden(.param .u64 in, .param .u64 out)\n{\n"
         "  .reg .b64 src, dst;\n  .reg .b32 t, a<4>, b<2>, c<4>, d<4>;\n"
         "  ld.param.u64 src, [in];\n  ld.param.u64 dst, [out];\n  mov.u32 t, %tid.x;\n"
         "  mad.wide.u32 src, t, 64, src;\n  mad.wide.u32 dst, t, 16, dst;\n" +
         load('a', registers.a, 0) + load('b', registers.b, 4) + load('c', registers.c, 8) +
         fmt::format("  mma.sync.aligned.{} {}, {}, {}, {};\n", form, list('d', registers.c),
                     list('a', registers.a), list('b', registers.b), list('c', registers.c)) +
         stores + "  ret;\n}\n";
}

}  // namespace annulus::golden
