// Clusters, warpgroups and stmatrix: the programs and the words that they must write.

#include <fmt/core.h>

#include "base/random.h"
#include "golden/golden.h"

namespace annulus::golden {
namespace {

void cluster(const Golden&, Words, Expected expected) {
  for (u32 y = 0; y < 2; ++y) {
    for (u32 x = 0; x < 4; ++x) {
      const u32 cta = y * 4 + x;
      const u32 rank = x % 2 + y * 2;
      const auto cta_of = [&](u32 other) { return other / 2 * 4 + x / 2 * 2 + other % 2; };
      const u32 next = (rank + 1) % 4;
      // Digits: clusterid x y, nclusterid x y, cluster_ctaid x y, cluster_nctaid x y.
      const u32 place = ((x / 2 * 10 + 0) * 100 + 21) * 10000 + (x % 2 * 10 + y) * 100 + 22;
      for (u32 t = 0; t < 32; ++t) {
        const Expected to = expected.subspan((cta * 32 + t) * 4, 4);
        to[0] = to_word(cta_of(next) * 1000 + t);
        to[1] = to_word(cta_of(next) * 1000 + t + 500);
        to[2] = to_word(place);
        to[3] = to_word(rank * 100 + 40 + next);
      }
    }
  }
}

void cluster_generic(const Golden&, Words, Expected expected) {
  for (u32 cta = 0; cta < 8; ++cta) {
    const u32 x = cta % 4;
    const u32 next = (x % 2 + cta / 4 * 2 + 1) % 4;
    const u32 theirs = next / 2 * 4 + x / 2 * 2 + next % 2;
    for (u32 t = 0; t < 32; ++t) {
      const Expected to = expected.subspan((cta * 32 + t) * 4, 4);
      to[0] = to_word(theirs * 1000 + t);
      to[1] = to_word(theirs * 1000 + t + 500);
      to[2] = to_word(u32{10});
      to[3] = to_word(u32{1000});
    }
  }
}

void warpgroups(const Golden&, Words, Expected expected) {
  for (Word& word : expected) word = to_word(u32{15});
}

// Lane l holds words 4 l to 4 l + 3 of in. Lane 8 i + r has the address of row r of matrix i. This
// row is number (5 lane + 3) mod 32 of the groups of 16 bytes.
std::string stmatrix_text(int count, bool transposed) {
  std::string registers;
  for (int i = 0; i < count; ++i) registers += fmt::format("{}r{}", i ? ", " : "", i);
  return fmt::format(
      ".version 8.0\n.target sm_90a\n.address_size 64\n\n"
      ".visible .entry golden(.param .u64 in, .param .u64 out)\n{{\n"
      "  .shared .align 16 .b8 rows[512];\n"
      "  .reg .b64 src, dst;\n  .reg .b32 t, base, a, own, r<4>, z;\n"
      "  ld.param.u64 src, [in];\n  ld.param.u64 dst, [out];\n  mov.u32 t, %tid.x;\n"
      "  mad.wide.u32 src, t, 16, src;\n  mad.wide.u32 dst, t, 16, dst;\n"
      "  mov.u32 base, rows;\n  mad.lo.u32 own, t, 16, base;\n  mov.u32 z, 0;\n"
      "  st.shared.v4.b32 [own], {{z, z, z, z}};\n  bar.warp.sync 0xffffffff;\n"
      "  ld.global.v4.b32 {{r0, r1, r2, r3}}, [src];\n"
      "  mad.lo.u32 a, t, 5, 3;\n  and.b32 a, a, 31;\n  mad.lo.u32 a, a, 16, base;\n"
      "  stmatrix.sync.aligned.m8n8.x{}{}.shared.b16 [a], {{{}}};\n"
      "  bar.warp.sync 0xffffffff;\n  ld.shared.v4.b32 {{r0, r1, r2, r3}}, [own];\n"
      "  st.global.v4.b32 [dst], {{r0, r1, r2, r3}};\n  ret;\n}}\n",
      count, transposed ? ".trans" : "", registers);
}

template <int kCount, bool kTransposed>
void define_stmatrix(const Golden&, Words in, Expected expected) {
  std::array<std::array<u16, 8>, 32> rows{};
  for (int i = 0; i < kCount; ++i) {
    for (int lane = 0; lane < 32; ++lane) {
      const u64 pair = in[static_cast<std::size_t>(lane * 2 + i / 2)];
      const u32 word = static_cast<u32>(pair >> i % 2 * 32);
      for (int part = 0; part < 2; ++part) {
        const int g = lane / 4;
        const int p = lane % 4 * 2 + part;
        const int row = kTransposed ? p : g;
        const int column = kTransposed ? g : p;
        const int where = ((i * 8 + row) * 5 + 3) % 32;
        rows[static_cast<std::size_t>(where)][static_cast<std::size_t>(column)] =
            static_cast<u16>(word >> 16 * part);
      }
    }
  }
  for (std::size_t i = 0; i < 128; ++i) {
    const auto& row = rows[i / 4];
    expected[i] = to_word(row[i % 4 * 2] | static_cast<u32>(row[i % 4 * 2 + 1]) << 16);
  }
}

template <int kCount, bool kTransposed>
void add_stmatrix(Set& set) {
  Golden& golden = set.text(fmt::format("stmatrix.x{}{}", kCount, kTransposed ? ".trans" : ""),
                            stmatrix_text(kCount, kTransposed), {1}, {32}, 64,
                            define_stmatrix<kCount, kTransposed>);
  golden.word_bytes = 4;
  golden.hopper = true;
  base::Random random(78);
  golden.in.resize(64);
  for (u64& pair : golden.in) pair = both(random.next(), random.next());
}

}  // namespace

void add_cluster(Set& set) {
  Golden& all = set.file("cluster", {4, 2}, {32}, 512, cluster);
  Golden& generic = set.file("cluster_generic", {4, 2}, {32}, 512, cluster_generic);
  Golden& groups = set.file("warpgroups", {1}, {384}, 192, warpgroups);
  all.word_bytes = generic.word_bytes = groups.word_bytes = 4;
  all.hopper = generic.hopper = groups.hopper = true;
  add_stmatrix<1, false>(set);
  add_stmatrix<2, false>(set);
  add_stmatrix<4, false>(set);
  add_stmatrix<1, true>(set);
  add_stmatrix<2, true>(set);
  add_stmatrix<4, true>(set);
}

}  // namespace annulus::golden
