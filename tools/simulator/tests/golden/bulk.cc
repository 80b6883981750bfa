// Bulk copies of plain ranges, their reductions, groups, and copies between the CTAs of a cluster.

#include "golden/bulk.h"

#include <fmt/core.h>

#include <cstring>

#include "base/random.h"
#include "golden/reductions.h"

namespace annulus::golden {

std::string bulk_head(u64 bytes, const std::string& parameters) {
  return fmt::format(
      ".version 8.6\n.target sm_90a\n.address_size 64\n\n"
      ".visible .entry golden(.param .u64 in, .param .u64 out{})\n{{\n"
      "  .shared .align 1024 .b8 room_bytes[{}];\n  .shared .align 8 .b64 bar_word;\n"
      "  .reg .b64 src, dst, m, at, x, policy;\n  .reg .b32 t, room, bar, i, a, rank;\n"
      "  .reg .pred first, more;\n"
      "  ld.param.u64 src, [in];\n  ld.param.u64 dst, [out];\n  mov.u32 t, %tid.x;\n"
      "  mov.u32 room, room_bytes;\n  mov.u32 bar, bar_word;\n  setp.eq.u32 first, t, 0;\n",
      parameters, bytes);
}

std::string bulk_wait_head() {
  return "  @first mbarrier.init.shared::cta.b64 [bar], 1;\n"
         "  @first fence.mbarrier_init.release.cluster;\n  bar.sync 0;\n";
}

std::string bulk_wait() {
  return "WAIT:\n  mbarrier.try_wait.parity.shared::cta.b64 more, [bar], 0;\n  @!more bra WAIT;\n";
}

std::string bulk_fill(u64 bytes) {
  return fmt::format(
      "  mov.u32 i, t;\nFILL:\n  setp.lt.u32 more, i, {};\n  @!more bra FILLED;\n"
      "  mad.wide.u32 at, i, 8, src;\n  ld.global.b64 x, [at];\n  mad.lo.u32 a, i, 8, room;\n"
      "  st.shared.b64 [a], x;\n  add.u32 i, i, 32;\n  bra FILL;\nFILLED:\n",
      bytes / 8);
}

std::string bulk_dump(u64 bytes) {
  return fmt::format(
      "  mov.u32 i, t;\nDUMP:\n  setp.lt.u32 more, i, {};\n  @!more bra DUMPED;\n"
      "  mad.lo.u32 a, i, 8, room;\n  ld.shared.b64 x, [a];\n  mad.wide.u32 at, i, 8, dst;\n"
      "  st.global.b64 [at], x;\n  add.u32 i, i, 32;\n  bra DUMP;\nDUMPED:\n  ret;\n}}\n",
      bytes / 8);
}

std::vector<u64> random_bulk_words(std::size_t count, u64 seed) {
  base::Random random(seed);
  std::vector<u64> words(count);
  for (u64& word : words) word = both(random.next(), random.next());
  return words;
}

namespace {

constexpr u64 kBytes = 2048;

void copy_words(const Golden& self, Words in, Expected expected) {
  const auto from = static_cast<std::size_t>(self.facts[0]);
  const auto to = static_cast<std::size_t>(self.facts[1]);
  for (std::size_t i = 0; i < static_cast<std::size_t>(self.facts[2]); ++i) {
    expected[to + i].bits = in[from + i];
  }
}

// `facts` holds the index of the first word of in, the index of the first word of out, and the
// number of words.
Golden& add_copy(Set& set, const std::string& name, const std::string& body,
                 std::vector<int> facts) {
  Golden& golden = set.text(name, bulk_head(kBytes, "") + body, {1}, {32}, kBytes / 8, copy_words);
  golden.in = random_bulk_words(kBytes / 8, 7);
  golden.facts = std::move(facts);
  golden.hopper = true;
  return golden;
}

// Words 4 to 67 of out are combined with words 0 to 63 of in.
template <typename T, T (*kCombine)(T, T)>
void reduce_words(const Golden&, Words in, Expected expected) {
  for (std::size_t i = 0; i < 64; ++i) {
    u64& to = expected[i + 4].bits;
    for (std::size_t at = 0; at < 8; at += sizeof(T)) {
      T old, value;
      std::memcpy(&old, reinterpret_cast<std::uint8_t*>(&to) + at, sizeof(T));
      std::memcpy(&value, reinterpret_cast<const std::uint8_t*>(&in[i]) + at, sizeof(T));
      old = kCombine(old, value);
      std::memcpy(reinterpret_cast<std::uint8_t*>(&to) + at, &old, sizeof(T));
    }
  }
}

Golden& add_reduction(Set& set, const char* operation,
                      void (*define)(const Golden&, Words, Expected)) {
  const std::string body =
      bulk_fill(512) +
      fmt::format(
          "  fence.proxy.async;\n  bar.sync 0;\n  add.s64 dst, dst, 32;\n"
          "  @first cp.reduce.async.bulk.global.shared::cta.bulk_group.{} [dst], [room], 512;\n"
          "  @first cp.async.bulk.commit_group;\n  @first cp.async.bulk.wait_group 0;\n"
          "  ret;\n}}\n",
          operation);
  Golden& golden = set.text(fmt::format("cp.reduce.async.bulk.{}", operation),
                            bulk_head(512, "") + body, {1}, {32}, 72, define);
  golden.in = random_bulk_words(64, 9);
  golden.hopper = true;
  return golden;
}

void add_reductions(Set& set) {
  add_reduction(set, "add.u32", reduce_words<u32, add<u32>>);
  add_reduction(set, "add.s32", reduce_words<i32, add<i32>>);
  add_reduction(set, "add.u64", reduce_words<u64, add<u64>>);
  add_reduction(set, "min.u32", reduce_words<u32, smaller<u32>>);
  add_reduction(set, "min.s64", reduce_words<i64, smaller<i64>>);
  add_reduction(set, "max.s32", reduce_words<i32, larger<i32>>);
  add_reduction(set, "max.s64", reduce_words<i64, larger<i64>>);
  add_reduction(set, "max.u64", reduce_words<u64, larger<u64>>);
  add_reduction(set, "inc.u32", reduce_words<u32, increment<u32>>);
  add_reduction(set, "dec.u32", reduce_words<u32, decrement<u32>>);
  add_reduction(set, "and.b32", reduce_words<u32, bit_and<u32>>);
  add_reduction(set, "or.b64", reduce_words<u64, bit_or<u64>>);
  add_reduction(set, "xor.b64", reduce_words<u64, bit_xor<u64>>);
  constexpr u64 kHalves = 0x83ff83ff83ff83ff;
  tame(add_reduction(set, "add.noftz.f16", reduce_words<u16, add_halves<F16>>), 0x4200420042004200,
       kHalves);
  tame(add_reduction(set, "add.noftz.bf16", reduce_words<u16, add_halves<Bf16>>),
       0x4040404040404040, kHalves);
  tame(add_reduction(set, "min.bf16", reduce_words<u16, smaller_half<Bf16>>), 0x4040404040404040,
       kHalves);
  tame(add_reduction(set, "max.f16", reduce_words<u16, larger_half<F16>>), 0x4200420042004200,
       kHalves);
  tame(add_reduction(set, "add.f32", reduce_words<float, add<float>>), 0x4040000040400000,
       0x83ffffff83ffffff);
  tame(add_reduction(set, "add.f64", reduce_words<double, add<double>>), 0x4008000000000000,
       0x83ffffffffffffff);
}

// Both CTAs receive words 0 to 63 of in by a multicast, and after them 64 different words each.
void define_multicast(const Golden&, Words in, Expected expected) {
  for (std::size_t i = 0; i < 64; ++i) {
    expected[i].bits = expected[128 + i].bits = in[i];
    expected[64 + i].bits = in[64 + i];
    expected[192 + i].bits = in[128 + i];
  }
}

// Each CTA sends its words to the other one.
void define_exchange(const Golden&, Words in, Expected expected) {
  for (std::size_t i = 0; i < 64; ++i) {
    expected[i].bits = in[64 + i];
    expected[64 + i].bits = in[i];
  }
}

std::string for_two(std::string text) {
  const std::size_t brace = text.find("\n{\n");
  return text.insert(brace, "\n.reqnctapercluster 2, 1, 1");
}

void add_clusters(Set& set) {
  const std::string both_arrive =
      "  barrier.cluster.arrive.release.aligned;\n  barrier.cluster.wait.acquire.aligned;\n";
  const std::string rank = "  mov.u32 rank, %cluster_ctarank;\n";
  const std::string multicast =
      bulk_head(1024, "") + "  .reg .b16 mask;\n  .reg .pred leader;\n  .reg .b32 place;\n" + rank +
      bulk_wait_head() + both_arrive +
      "  setp.eq.and.u32 leader, rank, 0, first;\n  mov.u16 mask, 3;\n"
      "  @first mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 1024;\n"
      "  @leader cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [room], [src], 512, [bar], mask;\n"
      "  add.u32 i, rank, 1;\n  mad.wide.u32 at, i, 512, src;\n  add.u32 place, room, 512;\n"
      "  @first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[place], [at], 512, [bar];\n" +
      bulk_wait() + "  mad.wide.u32 dst, rank, 1024, dst;\n" + bulk_dump(1024);
  Golden& all =
      set.text("cp.async.bulk multicast", for_two(multicast), {2}, {32}, 256, define_multicast);
  all.in = random_bulk_words(192, 21);
  const std::string exchange =
      bulk_head(1024, "") + "  .reg .b32 there, their_bar, place;\n" + rank + bulk_wait_head() +
      "  mad.wide.u32 src, rank, 512, src;\n" + bulk_fill(512) +
      "  fence.proxy.async.shared::cta;\n"
      "  @first mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512;\n" +
      both_arrive +
      "  xor.b32 i, rank, 1;\n  add.u32 place, room, 512;\n"
      "  mapa.shared::cluster.u32 there, place, i;\n"
      "  mapa.shared::cluster.u32 their_bar, bar, i;\n"
      "  @first cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [there], "
      "[room], 512, [their_bar];\n" +
      bulk_wait() + both_arrive + "  mov.u32 room, place;\n  mad.wide.u32 dst, rank, 512, dst;\n" +
      bulk_dump(512);
  Golden& swap =
      set.text("cp.async.bulk between CTAs", for_two(exchange), {2}, {32}, 128, define_exchange);
  swap.in = random_bulk_words(128, 22);
  all.hopper = swap.hopper = true;
}

}  // namespace

void add_bulk(Set& set) {
  const std::string load_head =
      bulk_wait_head() +
      "  @first mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 2048;\n"
      "  @first cp.async.bulk.prefetch.L2.global [src], 2048;\n";
  add_copy(set, "cp.async.bulk.shared::cluster.global",
           load_head +
               "  @first cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [room], "
               "[src], 2048, [bar];\n" +
               bulk_wait() + bulk_dump(kBytes),
           {0, 0, 256});
  add_copy(set, "cp.async.bulk.shared::cta.global in two pieces",
           load_head +
               "  @first cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes"
               ".L2::cache_hint [room+1024], [src+1024], 1024, [bar], 0x12F0000000000000;\n"
               "  mov.u32 i, 1024;\n"
               "  @first cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [room], "
               "[src], i, [bar];\n" +
               bulk_wait() + bulk_dump(kBytes),
           {0, 0, 256});
  const std::string store_head = bulk_fill(kBytes) + "  fence.proxy.async;\n  bar.sync 0;\n";
  add_copy(set, "cp.async.bulk.global.shared::cta",
           store_head +
               "  @first cp.async.bulk.global.shared::cta.bulk_group [dst+16], [room+32], 1600;\n"
               "  @first cp.async.bulk.commit_group;\n  @first cp.async.bulk.wait_group.read 0;\n"
               "  ret;\n}\n",
           {4, 2, 200});
  // There are two groups, and .read 1 waits only for the first. The source of the first is
  // overwritten while the second may still be read.
  add_copy(
      set, "cp.async.bulk.wait_group.read 1",
      store_head +
          "  @first cp.async.bulk.global.shared::cta.bulk_group [dst], [room], 1024;\n"
          "  @first cp.async.bulk.commit_group;\n"
          "  @first cp.async.bulk.global.shared::cta.bulk_group [dst+1024], [room+1024], 1024;\n"
          "  @first cp.async.bulk.commit_group;\n  @first cp.async.bulk.wait_group.read 1;\n"
          "  mov.b64 x, 0;\n  @first st.shared.b64 [room], x;\n"
          "  @first cp.async.bulk.wait_group 0;\n  ret;\n}\n",
      {0, 0, 256});
  add_reductions(set);
  add_clusters(set);
  add_tensor(set);
}

}  // namespace annulus::golden
