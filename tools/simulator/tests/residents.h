#ifndef ANNULUS_SIMULATOR_TESTS_RESIDENTS_H_
#define ANNULUS_SIMULATOR_TESTS_RESIDENTS_H_

// Kernels whose CTAs wait for each other or distribute work, for tests of co-resident CTAs.

namespace annulus::simulator::test {

// All kernels have the parameters (p, n). p is an array of 32-bit words.
constexpr const char* kResidents = R"(
.version 8.0
.target sm_80
.address_size 64

// works(p, n): lane 0 of each CTA asks p[0] for works until n are taken. It works on number r for
// some time, which is longer for some numbers where `uneven` says so, and writes its CTA to p[1 + r].
.visible .entry works(.param .u64 p, .param .u32 n, .param .u32 rounds, .param .u32 uneven)
{
  .reg .b32 %r<9>;
  .reg .b64 %rd<6>;
  .reg .pred %p<3>;
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra END;
  ld.param.u64 %rd1, [p];
  ld.param.u32 %r2, [n];
  ld.param.u32 %r5, [uneven];
  mov.u32 %r4, %ctaid.x;
NEXT:
  atom.global.add.u32 %r3, [%rd1], 1;
  setp.ge.u32 %p1, %r3, %r2;
  @%p1 bra END;
  ld.param.u32 %r6, [rounds];
  rem.u32 %r7, %r3, 16;
  mul.lo.u32 %r7, %r7, %r5;
  add.u32 %r6, %r6, %r7;
AGAIN:
  sub.u32 %r6, %r6, 1;
  setp.ne.u32 %p2, %r6, 0;
  @%p2 bra AGAIN;
  mul.wide.u32 %rd2, %r3, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3+4], %r4;
  bra NEXT;
END:
  ret;
}

// grid_sync(p, n): n times each CTA adds the neighbour's word p[1][(c + 1) % ctas] to its own in
// p[0][c], then swaps the halves, with a barrier of the grid as CUDA's cooperative groups have it.
.visible .entry grid_sync(.param .u64 p, .param .u32 n)
{
  .reg .b32 %r<16>;
  .reg .b64 %rd<12>;
  .reg .pred %p<3>;
  ld.param.u64 %rd1, [p];
  ld.param.u32 %r9, [n];
  mov.u32 %r1, %envreg2;
  mov.u32 %r2, %envreg1;
  cvt.u64.u32 %rd2, %r1;
  cvt.u64.u32 %rd3, %r2;
  shl.b64 %rd3, %rd3, 32;
  or.b64 %rd2, %rd2, %rd3;
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %nctaid.x;
  mov.u32 %r5, %tid.x;
  add.u32 %r6, %r3, 1;
  rem.u32 %r6, %r6, %r4;
  mul.wide.u32 %rd4, %r3, 4;
  add.u64 %rd5, %rd1, %rd4;
  mul.wide.u32 %rd6, %r6, 4;
  add.u64 %rd7, %rd1, %rd6;
  mul.wide.u32 %rd8, %r4, 4;
ROUND:
  setp.ne.u32 %p1, %r5, 0;
  @%p1 bra WAIT;
  ld.global.u32 %r7, [%rd7];
  ld.global.u32 %r8, [%rd5];
  add.u32 %r7, %r7, %r8;
  add.u64 %rd9, %rd5, %rd8;
  st.global.u32 [%rd9], %r7;
WAIT:
  barrier.sync 0;
  @%p1 bra MET;
  mov.u32 %r10, 1;
  setp.ne.u32 %p2, %r3, 0;
  @%p2 bra ARRIVE;
  sub.u32 %r10, 0x80000001, %r4;
ARRIVE:
  atom.add.release.gpu.u32 %r11, [%rd2+4], %r10;
POLL:
  ld.acquire.gpu.u32 %r12, [%rd2+4];
  xor.b32 %r12, %r12, %r11;
  setp.ge.s32 %p2, %r12, 0;
  @%p2 bra POLL;
MET:
  barrier.sync 0;
  add.u64 %rd5, %rd5, %rd8;
  add.u64 %rd7, %rd7, %rd8;
  sub.u32 %r9, %r9, 1;
  setp.ne.u32 %p2, %r9, 0;
  @%p2 bra ROUND;
  ret;
}

// chain(p, n): CTA c waits for the flag of CTA c + n, if there is one, adds 1 to the word beside it,
// and raises its own flag. p[2 c] is the flag, p[2 c + 1] the word.
.visible .entry chain(.param .u64 p, .param .s32 n)
{
  .reg .b32 %r<10>;
  .reg .b64 %rd<6>;
  .reg .pred %p<3>;
  mov.u32 %r8, %tid.x;
  setp.ne.u32 %p1, %r8, 0;
  @%p1 bra END;
  ld.param.u64 %rd1, [p];
  ld.param.s32 %r1, [n];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %nctaid.x;
  mul.wide.u32 %rd2, %r2, 8;
  add.u64 %rd2, %rd1, %rd2;
  add.s32 %r4, %r2, %r1;
  mov.u32 %r5, 0;
  setp.ge.u32 %p1, %r4, %r3;
  @%p1 bra RAISE;
  mul.wide.u32 %rd3, %r4, 8;
  add.u64 %rd3, %rd1, %rd3;
POLL:
  ld.acquire.gpu.u32 %r6, [%rd3];
  setp.eq.u32 %p2, %r6, 0;
  @%p2 bra POLL;
  ld.global.u32 %r5, [%rd3+4];
RAISE:
  add.u32 %r5, %r5, 1;
  st.global.u32 [%rd2+4], %r5;
  mov.u32 %r7, 1;
  st.release.gpu.u32 [%rd2], %r7;
END:
  ret;
}

// slow(p, n): CTA 1 counts to n before it raises the flag p[0], for which CTA 0 waits.
.visible .entry slow(.param .u64 p, .param .u32 n)
{
  .reg .b32 %r<6>;
  .reg .b64 %rd<3>;
  .reg .pred %p<3>;
  ld.param.u64 %rd1, [p];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x;
  setp.eq.u32 %p1, %r2, 0;
  @%p1 bra POLL;
COUNT:
  sub.u32 %r1, %r1, 1;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra COUNT;
  mov.u32 %r3, 7;
  st.relaxed.gpu.u32 [%rd1], %r3;
  ret;
POLL:
  ld.volatile.global.u32 %r4, [%rd1];
  setp.eq.u32 %p2, %r4, 0;
  @%p2 bra POLL;
  ret;
}

// locked(p, n): each CTA takes the lock p[0] and never gives it back.
.visible .entry locked(.param .u64 p, .param .u32 n)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<3>;
  .reg .pred %p<3>;
  ld.param.u64 %rd1, [p];
POLL:
  atom.global.cas.b32 %r1, [%rd1], 0, 1;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra POLL;
  ret;
}

// left(p, n): warp 1 of each CTA counts to n and exits; warp 0 waits for a flag that nobody raises.
.visible .entry left(.param .u64 p, .param .u32 n)
{
  .reg .b32 %r<6>;
  .reg .b64 %rd<3>;
  .reg .pred %p<3>;
  ld.param.u64 %rd1, [p];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x;
  setp.lt.u32 %p1, %r2, 32;
  @%p1 bra POLL;
COUNT:
  sub.u32 %r1, %r1, 1;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra COUNT;
  ret;
POLL:
  ld.volatile.global.u32 %r4, [%rd1];
  setp.eq.u32 %p2, %r4, 0;
  @%p2 bra POLL;
  ret;
}

// counted(p, n): polls for ever, and counts how often.
.visible .entry counted(.param .u64 p, .param .u32 n)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<3>;
  .reg .pred %p<3>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r2, 0;
POLL:
  ld.volatile.global.u32 %r1, [%rd1];
  add.u32 %r2, %r2, 1;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra POLL;
  ret;
}

// racing(p, n): CTA 1 reads p[0], which CTA 2 writes; nothing orders them. All poll p[1] once.
.visible .entry racing(.param .u64 p, .param .u32 n)
{
  .reg .b32 %r<5>;
  .reg .b64 %rd<3>;
  .reg .pred %p<3>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %ctaid.x;
POLL:
  ld.volatile.global.u32 %r2, [%rd1+4];
  setp.ne.u32 %p1, %r2, 0;
  @%p1 bra POLL;
  setp.eq.u32 %p1, %r1, 1;
  @%p1 ld.global.u32 %r3, [%rd1];
  setp.eq.u32 %p1, %r1, 2;
  @%p1 st.global.u32 [%rd1], %r1;
  ret;
}
.visible .entry racing_fenced(.param .u64 p, .param .u32 n)
{
  .reg .b32 %r<5>;
  .reg .b64 %rd<3>;
  .reg .pred %p<3>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %ctaid.x;
POLL:
  ld.volatile.global.u32 %r2, [%rd1+4];
  setp.ne.u32 %p1, %r2, 0;
  @%p1 bra POLL;
  fence.acq_rel.gpu;
  setp.eq.u32 %p1, %r1, 1;
  @%p1 ld.global.u32 %r3, [%rd1];
  setp.eq.u32 %p1, %r1, 2;
  @%p1 st.global.u32 [%rd1], %r1;
  ret;
}

// stray(p, n): CTA n reads beyond all memory, when CTA 0 has raised a flag.
.visible .entry stray(.param .u64 p, .param .u32 n)
{
  .reg .b32 %r<5>;
  .reg .b64 %rd<3>;
  .reg .pred %p<3>;
  ld.param.u64 %rd1, [p];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x;
  setp.ne.u32 %p1, %r2, 0;
  @%p1 bra POLL;
  mov.u32 %r3, 1;
  st.release.gpu.u32 [%rd1], %r3;
POLL:
  ld.acquire.gpu.u32 %r3, [%rd1];
  setp.eq.u32 %p1, %r3, 0;
  @%p1 bra POLL;
  setp.ne.u32 %p1, %r1, %r2;
  @%p1 bra END;
  mov.u64 %rd2, 64;
  ld.global.u32 %r3, [%rd2];
END:
  ret;
}

// lanes(p, n): each lane takes the lock p[0] in a loop of its own, counts in p[1] and leaves n in the
// lock, which gives it back if n is 0.
.visible .entry lanes(.param .u64 p, .param .u32 n)
{
  .reg .b32 %r<5>;
  .reg .b64 %rd<2>;
  .reg .pred %p<2>;
  ld.param.u64 %rd1, [p];
  ld.param.u32 %r1, [n];
TAKE:
  atom.global.exch.b32 %r2, [%rd1], 1;
  setp.ne.u32 %p1, %r2, 0;
  @%p1 bra TAKE;
  membar.gl;
  ld.global.u32 %r3, [%rd1+4];
  add.u32 %r3, %r3, 1;
  st.global.u32 [%rd1+4], %r3;
  membar.gl;
  atom.global.exch.b32 %r4, [%rd1], %r1;
  ret;
}
)";

// exchange(p, n): warp 0 of each CTA copies 16 bytes from p to shared memory in bulk and waits for
// them. At the same time warp 1 polls the flag of the CTA `across`, whose warp 0 sets the flag
// after its own copy. The flags begin at p[64].
constexpr const char* kExchange = R"(
.version 8.0
.target sm_90a
.address_size 64
.visible .entry exchange(.param .u64 p, .param .u32 n)
{
  .reg .b32 %r<12>;
  .reg .b64 %rd<8>;
  .reg .pred %p<3>;
  .shared .align 16 .b8 tile[16];
  .shared .align 8 .b64 ready;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %nctaid.x;
  mov.u32 %r4, tile;
  mov.u32 %r5, ready;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra MADE;
  mbarrier.init.shared.b64 [%r5], 1;
  fence.mbarrier_init.release.cluster;
MADE:
  barrier.sync 0;
  add.u64 %rd2, %rd1, 256;
  @!%p1 bra COPY;
  setp.ne.u32 %p2, %r1, 32;
  @%p2 bra END;
  sub.u32 %r6, %r3, 1;
  sub.u32 %r6, %r6, %r2;
  mul.wide.u32 %rd3, %r6, 4;
  add.u64 %rd3, %rd2, %rd3;
POLL:
  ld.acquire.gpu.u32 %r7, [%rd3];
  setp.eq.u32 %p2, %r7, 0;
  @%p2 bra POLL;
  bra END;
COPY:
  mbarrier.arrive.expect_tx.shared.b64 _, [%r5], 16;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%rd1], 16, [%r5];
WAIT:
  mbarrier.try_wait.parity.shared.b64 %p2, [%r5], 0;
  @!%p2 bra WAIT;
  ld.shared.u32 %r8, [%r4];
  mul.wide.u32 %rd4, %r2, 4;
  add.u64 %rd4, %rd2, %rd4;
  st.release.gpu.u32 [%rd4], %r8;
END:
  ret;
}
)";

}  // namespace annulus::simulator::test

#endif  // ANNULUS_SIMULATOR_TESTS_RESIDENTS_H_
