// Instructions of sm_90a for the kernels in the folder above. A fault is reported at the line that
// uses one of these, because this folder is named ptx.
using u32 = unsigned;
using u64 = unsigned long long;

#define DEVICE __device__ __forceinline__

DEVICE u32 shared_address(const void* p) {
  return static_cast<u32>(__cvta_generic_to_shared(p));
}

// --- mbarrier ---
DEVICE void init(u64& bar, u32 count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&bar)), "r"(count)
               : "memory");
}
DEVICE void invalidate(u64& bar) {
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(shared_address(&bar)) : "memory");
}
DEVICE void fence_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
DEVICE void arrive(u64& bar, u32 count = 1) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&bar)),
               "r"(count)
               : "memory");
}
DEVICE void arrive_without_completing(u64& bar) {
  asm volatile("{\n.reg .b64 s;\nmbarrier.arrive.noComplete.shared::cta.b64 s, [%0], 1;\n}" ::"r"(
                   shared_address(&bar))
               : "memory");
}
DEVICE void complete(u64& bar, u32 bytes) {
  asm volatile("mbarrier.complete_tx.relaxed.cluster.shared::cta.b64 [%0], %1;" ::"r"(
                   shared_address(&bar)),
               "r"(bytes)
               : "memory");
}
DEVICE u64 arrive_for_state(u64& bar) {
  u64 state;
  asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];"
               : "=l"(state)
               : "r"(shared_address(&bar))
               : "memory");
  return state;
}
DEVICE void expect(u64& bar, u32 bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&bar)),
               "r"(bytes)
               : "memory");
}
DEVICE bool test_state(u64& bar, u64 state) {
  u32 over;
  asm volatile(
      "{\n.reg .pred p;\nmbarrier.test_wait.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
      : "=r"(over)
      : "r"(shared_address(&bar)), "l"(state)
      : "memory");
  return over;
}
DEVICE bool test(u64& bar, u32 parity) {
  u32 over;
  asm volatile(
      "{\n.reg .pred p;\nmbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n}"
      : "=r"(over)
      : "r"(shared_address(&bar)), "r"(parity)
      : "memory");
  return over;
}
DEVICE void wait(u64& bar, u32 parity) {
  asm volatile(
      "{\n.reg .pred p;\nWAIT_%=:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
      "@!p bra WAIT_%=;\n}" ::"r"(shared_address(&bar)),
      "r"(parity)
      : "memory");
}
// Waits for an mbarrier at which other CTAs of the cluster arrive.
DEVICE void wait_cluster(u64& bar, u32 parity) {
  asm volatile(
      "{\n.reg .pred p;\nWAIT_%=:\n"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], %1;\n"
      "@!p bra WAIT_%=;\n}" ::"r"(shared_address(&bar)),
      "r"(parity)
      : "memory");
}

// --- Copies of threads ---
DEVICE void copy_async(void* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from)
               : "memory");
}
DEVICE void copies_arrive(u64& bar) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared_address(&bar))
               : "memory");
}
DEVICE void copies_arrive_beside(u64& bar) {
  asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" ::"r"(shared_address(&bar)) : "memory");
}

// --- Bulk copies ---
DEVICE void load(void* to, const void* from, u32 bytes, u64& bar) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(&bar))
      : "memory");
}
DEVICE void load_for(void* to, const void* from, u32 bytes, u64& bar, u32 ctas) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
      "[%1], %2, [%3], %4;" ::"r"(shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(&bar)), "h"(static_cast<unsigned short>(ctas))
      : "memory");
}
DEVICE void store(void* to, const void* from, u32 bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
               "r"(shared_address(from)), "r"(bytes)
               : "memory");
}
DEVICE void commit_stores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <int kLeft>
DEVICE void wait_stores_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kLeft) : "memory");
}
template <int kLeft>
DEVICE void wait_stores() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(kLeft) : "memory");
}
DEVICE void fence_async_global() { asm volatile("fence.proxy.async.global;" ::: "memory"); }
DEVICE void fence_async() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

struct alignas(64) TensorMap {
  u64 opaque[16];
};
DEVICE void load_box(void* to, const TensorMap& map, int x, int y, u64& bar) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%2, %3}], [%4];" ::"r"(shared_address(to)),
      "l"(&map), "r"(x), "r"(y), "r"(shared_address(&bar))
      : "memory");
}
DEVICE void store_box(const TensorMap& map, int x, int y, const void* from) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map),
      "r"(x), "r"(y), "r"(shared_address(from))
      : "memory");
}
DEVICE void load_line(void* to, const TensorMap& map, int x, u64& bar) {
  asm volatile(
      "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
      "[%1, {%2}], [%3];" ::"r"(shared_address(to)),
      "l"(&map), "r"(x), "r"(shared_address(&bar))
      : "memory");
}

// --- Warpgroups ---
DEVICE bool elect() {
  u32 leader;
  asm volatile("{\n.reg .pred p;\nelect.sync _|p, 0xffffffff;\nselp.u32 %0, 1, 0, p;\n}"
               : "=r"(leader));
  return leader;
}
template <int kThreads>
DEVICE void sync_some(int id) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(kThreads) : "memory");
}
template <int kCount>
DEVICE void more_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
}
template <int kCount>
DEVICE void fewer_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}

// --- wgmma: 64 x 16 times 16 x 16, bf16, K-major operands in rows of 128 bytes with a swizzle ---
DEVICE u64 describe(const void* matrix) {
  return static_cast<u64>((shared_address(matrix) & 0x3ffff) >> 4) | 1ull << 16 | 64ull << 32 |
         1ull << 62;
}
DEVICE void fence_registers() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int kLeft>
DEVICE void wait_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kLeft) : "memory");
}
DEVICE void multiply(float (&d)[8], u64 a, u64 b, bool accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %10, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7}, %8, "
      "%9, p, 1, 1, 0, 0;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7])
      : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)));
}
DEVICE void multiply(float (&d)[8], u32 (&a)[4], u64 b, bool accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %13, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {%0, %1, %2, %3, %4, %5, %6, %7}, "
      "{%8, %9, %10, %11}, %12, p, 1, 1, 0;\n}"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
        "+f"(d[7])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(accumulate)));
}
// Keeps the compiler from moving uses of the registers across this point.
DEVICE void pin(float (&d)[8]) {
#pragma unroll
  for (int i = 0; i < 8; ++i) asm volatile("" : "+f"(d[i])::"memory");
}
DEVICE float sum(const float (&d)[8]) {
  float total = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) total += d[i];
  return total;
}
// Fills a tile of 80 rows of 128 bytes: A is rows 0 to 63, B is rows 64 to 79. All 128 threads of a
// warpgroup call it.
DEVICE void fill(u32* tile, u32 value) {
  for (u32 i = threadIdx.x % 128; i < 80 * 32; i += 128) tile[i] = value + i % 7;
}
// Fills a tile that products of all warps may read.
DEVICE void prepare(u32* tile, u32 value) {
  fill(tile, value);
  fence_async();
  __syncthreads();
}
// Computes one product with the fences and waits that it needs. Returns the sum of a thread's part.
DEVICE float product(u64 a, u64 b, bool accumulate = true) {
  float d[8] = {};
  pin(d);
  fence_registers();
  multiply(d, a, b, accumulate);
  commit_products();
  wait_products<0>();
  pin(d);
  return sum(d);
}

// --- Clusters ---
DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
DEVICE u32 cluster_rank() {
  u32 rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
DEVICE u32 remote(const void* p, u32 rank) {
  u32 address;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(address)
               : "r"(shared_address(p)), "r"(rank));
  return address;
}
DEVICE u32 load_remote(u32 address) {
  u32 value;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
  return value;
}
DEVICE void store_remote(u32 address, u32 value) {
  asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}
// The address of another CTA's word as a generic address, like map_shared_rank of a cluster_group.
DEVICE const u32* generic_remote(const u32* p, u32 rank) {
  const u32* address;
  asm volatile("mapa.u64 %0, %1, %2;" : "=l"(address) : "l"(p), "r"(rank));
  return address;
}
DEVICE u32 load_generic(const u32* p, u32 rank) {
  u32 value;
  asm volatile("ld.u32 %0, [%1];" : "=r"(value) : "l"(generic_remote(p, rank)) : "memory");
  return value;
}
DEVICE void store_generic(const u32* p, u32 rank, u32 value) {
  asm volatile("st.u32 [%0], %1;" ::"l"(generic_remote(p, rank)), "r"(value) : "memory");
}
DEVICE void add_remote(const u32* p, u32 rank, u32 value) {
  asm volatile("red.add.u32 [%0], %1;" ::"l"(generic_remote(p, rank)), "r"(value) : "memory");
}
DEVICE void arrive_remote(u32 bar) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(bar) : "memory");
}
// An arrival at another CTA's mbarrier without a scope. Its scope is then the CTA that arrives.
DEVICE void arrive_remote_of_cta(u32 bar) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(bar) : "memory");
}
DEVICE void arrive_remote_relaxed(u32 bar) {
  asm volatile("mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%0];" ::"r"(bar)
               : "memory");
}

// A kernel for both CTAs of a cluster, with block=96. The first warp copies half of every tile for
// both. A stage is free when the consumers of both CTAs have freed it, and neither CTA exits while
// the other may still write. The copying warp waits for free stages by `kWait`, and `kArrive` frees
// a stage. With `kStores` the consumers write into a stage before they free it.
template <void (&kWait)(u64&, u32), void (&kArrive)(u32) = arrive_remote, bool kStores = false>
DEVICE void copy_for_both(const u32* in, u32* out) {
  __shared__ alignas(128) u32 stages[2][64];
  __shared__ u64 full[2], empty[2];
  const u32 rank = cluster_rank();
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; ++i) {
      init(full[i], 1);
      init(empty[i], 4);  // two warps of two CTAs
    }
    fence_init();
  }
  cluster_arrive();
  cluster_wait();
  if (threadIdx.x < 32) {
    if (elect()) {
#pragma unroll 1
      for (u32 tile = 0; tile < 7; ++tile) {
        const u32 stage = tile & 1;
        kWait(empty[stage], tile / 2 & 1 ^ 1);
        expect(full[stage], 256);
        load_for(&stages[stage][rank * 32], in + tile * 64 + rank * 32, 128, full[stage], 3);
      }
    }
    __syncwarp();
  } else {
    u32 total = 0;
#pragma unroll 1
    for (u32 tile = 0; tile < 7; ++tile) {
      const u32 stage = tile & 1;
      wait(full[stage], tile / 2 & 1);
      total = total * 3 + stages[stage][threadIdx.x - 32];
      if (kStores) {
        stages[stage][threadIdx.x - 32] = total;
        fence_async();
      }
      __syncwarp();
      if (threadIdx.x % 32 < 2) kArrive(remote(&empty[stage], threadIdx.x % 32));
    }
    out[rank * 64 + threadIdx.x - 32] = total;
  }
  cluster_arrive();
  cluster_wait();
}

// CTA 1 of a cluster writes `data`, block=32 words of global memory, and arrives at an mbarrier of
// CTA 0. CTA 0 waits there by `kWait` and reads the words.
template <void (&kWait)(u64&, u32)>
DEVICE void hand_over(u32* data, u32* out) {
  __shared__ u64 bar;
  const u32 rank = cluster_rank();
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
  }
  cluster_arrive();
  cluster_wait();
  if (rank == 1) {
    data[threadIdx.x] = 5;
    __syncwarp();
    if (threadIdx.x == 0) arrive_remote(remote(&bar, 0));
  } else {
    kWait(bar, 0);
    out[threadIdx.x] = data[threadIdx.x];
  }
  cluster_arrive();
  cluster_wait();
}
