#ifndef ANNULUS_PTX_WGMMA_CUH_
#define ANNULUS_PTX_WGMMA_CUH_

// Matrix products of a warpgroup (four warps whose first is a multiple of four): D = A B + D with A
// 64x16 and B 16xN of 16-bit elements, or 64x32 and 32xN of 8-bit ones, D 64xN of fp32. They are
// asynchronous: between a product and the wait that covers it, its registers may be neither read
// nor written, and its shared memory may not be written. PTX ISA 9.0, 9.7.15 "Asynchronous
// warpgroup level matrix".
//
// With w = warp % 4, g = lane / 4 and t = lane % 4:
//
//   D  d[c][0] (16w + g, 8c + 2t)  d[c][1] its right neighbour  d[c][2], d[c][3] the same 8 rows on
//   A  a[0] (16w + g, 2t)  a[1] 8 rows on  a[2] 8 columns on  a[3] both, each with its right
//      neighbour in the upper half: two pieces of D, converted, are an A
//      of 8-bit elements: a[0] (16w + g, 4t to 4t + 3)  a[1] 8 rows on  a[2] 16 columns on  a[3]
//      both, the first in the lowest byte
//
// All 128 threads take part, converged, with the same descriptors.

namespace annulus::ptx {

// Bits 62 and 63 of a descriptor.
enum : unsigned { kSwizzle128 = 1, kSwizzle64 = 2 };

// A matrix in shared memory, in panels whose rows have as many bytes as the swizzle (PTX ISA 9.0,
// 9.7.15.5.1.2). `leading` and `stride` are distances in bytes:
//
//   K-major   (rows of the product's M or N, along K)   leading unused, stride to the next 8 rows
//   MN-major  (rows along M or N, transposed)           leading to the next panel of columns,
//                                                       stride to the next 8 rows
//
// Panels start at multiples of 8 rows; the address may be a multiple of 32 bytes higher, within the
// first row. `address` is in units of 16 bytes and below 2^14: the sum of an address and a step
// needs no mask.
template <unsigned kSwizzle = kSwizzle128>
__device__ __forceinline__ unsigned long long matrix_descriptor(unsigned address, unsigned leading,
                                                                unsigned stride) {
  const unsigned low = address + (leading >> 4 << 16);
  const unsigned high = (stride >> 4) | kSwizzle << 30;
  return static_cast<unsigned long long>(high) << 32 | low;
}
__device__ __forceinline__ unsigned descriptor_address(unsigned shared) {
  return (shared & 0x3ffff) >> 4;
}

// wgmma.fence: PTX 8.0, sm_90a. It is needed before the first product, and before a product whose
// registers other instructions have accessed since the last one.
__device__ __forceinline__ void fence_products() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

// wgmma.commit_group: PTX 8.0, sm_90a. The products since the last commit become a group.
__device__ __forceinline__ void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// wgmma.wait_group: PTX 8.0, sm_90a. Waits until at most kPending youngest groups are under way.
template <int kPending>
__device__ __forceinline__ void wait_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// No instruction: the compiler must treat the registers as written here. It is used after a wait,
// so that no result is read before the wait, and before a product, so that no operand is written
// after the product.
template <int kPieces>
__device__ __forceinline__ void hold(float (&d)[kPieces][4]) {
#pragma unroll
  for (int c = 0; c < kPieces; ++c) {
#pragma unroll
    for (int i = 0; i < 4; ++i) asm volatile("" : "+f"(d[c][i]));
  }
}

// clang-format off
// The registers of D for N columns: their numbers and their operands.
#define ANNULUS_LIST_32 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15"
#define ANNULUS_LIST_64 \
  ANNULUS_LIST_32 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define ANNULUS_LIST_80 \
  ANNULUS_LIST_64 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define ANNULUS_LIST_96 \
  ANNULUS_LIST_80 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define ANNULUS_LIST_112 \
  ANNULUS_LIST_96 ", %48, %49, %50, %51, %52, %53, %54, %55"
#define ANNULUS_LIST_128 \
  ANNULUS_LIST_112 ", %56, %57, %58, %59, %60, %61, %62, %63"
#define ANNULUS_LIST_144 \
  ANNULUS_LIST_128 ", %64, %65, %66, %67, %68, %69, %70, %71"
#define ANNULUS_LIST_160 \
  ANNULUS_LIST_144 ", %72, %73, %74, %75, %76, %77, %78, %79"
#define ANNULUS_LIST_176 \
  ANNULUS_LIST_160 ", %80, %81, %82, %83, %84, %85, %86, %87"
#define ANNULUS_LIST_192 \
  ANNULUS_LIST_176 ", %88, %89, %90, %91, %92, %93, %94, %95"
#define ANNULUS_LIST_256 \
  ANNULUS_LIST_192 ", %96, %97, %98, %99, %100, %101, %102, %103" \
  ", %104, %105, %106, %107, %108, %109, %110, %111" \
  ", %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define ANNULUS_PIECES_32 \
  ANNULUS_PIECE(0), ANNULUS_PIECE(1), ANNULUS_PIECE(2), ANNULUS_PIECE(3)
#define ANNULUS_PIECES_64 \
  ANNULUS_PIECES_32, ANNULUS_PIECE(4), ANNULUS_PIECE(5), ANNULUS_PIECE(6), ANNULUS_PIECE(7)
#define ANNULUS_PIECES_80 \
  ANNULUS_PIECES_64, ANNULUS_PIECE(8), ANNULUS_PIECE(9)
#define ANNULUS_PIECES_96 \
  ANNULUS_PIECES_80, ANNULUS_PIECE(10), ANNULUS_PIECE(11)
#define ANNULUS_PIECES_112 \
  ANNULUS_PIECES_96, ANNULUS_PIECE(12), ANNULUS_PIECE(13)
#define ANNULUS_PIECES_128 \
  ANNULUS_PIECES_112, ANNULUS_PIECE(14), ANNULUS_PIECE(15)
#define ANNULUS_PIECES_144 \
  ANNULUS_PIECES_128, ANNULUS_PIECE(16), ANNULUS_PIECE(17)
#define ANNULUS_PIECES_160 \
  ANNULUS_PIECES_144, ANNULUS_PIECE(18), ANNULUS_PIECE(19)
#define ANNULUS_PIECES_176 \
  ANNULUS_PIECES_160, ANNULUS_PIECE(20), ANNULUS_PIECE(21)
#define ANNULUS_PIECES_192 \
  ANNULUS_PIECES_176, ANNULUS_PIECE(22), ANNULUS_PIECE(23)
#define ANNULUS_PIECES_256 \
  ANNULUS_PIECES_192, ANNULUS_PIECE(24), ANNULUS_PIECE(25), ANNULUS_PIECE(26), ANNULUS_PIECE(27), \
  ANNULUS_PIECE(28), ANNULUS_PIECE(29), ANNULUS_PIECE(30), ANNULUS_PIECE(31)
#define ANNULUS_PIECE(c) "+f"(d[c][0]), "+f"(d[c][1]), "+f"(d[c][2]), "+f"(d[c][3])

// A kernel has products of one type and of one width or two. Its source defines ANNULUS_WGMMA_BF16,
// ANNULUS_WGMMA_F16 or ANNULUS_WGMMA_E4M3, and ANNULUS_WGMMA_<columns> for each width, before its
// #include, because reading the text of all products would take the compiler longer than compiling
// those that a small kernel calls.
#if defined(ANNULUS_WGMMA_E4M3)
#define ANNULUS_WGMMA_NAME e4m3
#define ANNULUS_WGMMA_TYPE "k32.f32.e4m3.e4m3 {"
#define ANNULUS_WGMMA_END ""
#define ANNULUS_WGMMA_TRANSPOSED(r) ""
#elif defined(ANNULUS_WGMMA_F16)
#define ANNULUS_WGMMA_NAME f16
#define ANNULUS_WGMMA_TYPE "k16.f32.f16.f16 {"
#define ANNULUS_WGMMA_END ", 0, 0"
#define ANNULUS_WGMMA_TRANSPOSED(r) ", " r
#else
#define ANNULUS_WGMMA_NAME bf16
#define ANNULUS_WGMMA_TYPE "k16.f32.bf16.bf16 {"
#define ANNULUS_WGMMA_END ", 0, 0"
#define ANNULUS_WGMMA_TRANSPOSED(r) ", " r
#endif

// One instruction. A is a descriptor or four registers, and `more` is the predicate that
// accumulates.
#define ANNULUS_PRODUCT(n, a, b, more, end)                       \
  "wgmma.mma_async.sync.aligned.m64n" #n ANNULUS_WGMMA_TYPE       \
  ANNULUS_LIST_##n "}, " a ", " b ", " more ", 1, 1" end ";\n"
#define ANNULUS_FOUR(a, b, c, d) "{" a ", " b ", " c ", " d "}"

// The products with D of n columns, with A in shared memory and with A in registers: a single
// product, and four in sequence, which the compiler handles as one instruction. r0 to r21 are the
// numbers of the operands after the operands of D; asm text needs them as literals. All are
// templates, because NVRTC does less work for templates that a kernel does not call.
#define ANNULUS_WGMMA(n, name, r0, r1, r2, r3, r4, r5, r6, r7, r8, r9, r10, r11, r12, r13, r14,  \
                      r15, r16, r17, r18, r19, r20, r21)                                         \
  template <int kTransposed = 0>                                                                 \
  static __device__ __forceinline__ void name(float (&d)[n / 8][4], unsigned long long a,        \
                                              unsigned long long b, int accumulate) {            \
    asm volatile("{\n.reg .pred more;\nsetp.ne.b32 more, " r2 ", 0;\n"                          \
                 ANNULUS_PRODUCT(n, r0, r1, "more", ANNULUS_WGMMA_END) "}"                       \
                 : ANNULUS_PIECES_##n : "l"(a), "l"(b), "r"(accumulate) : "memory");             \
  }                                                                                              \
  template <int kTransposed = 0>                                                                 \
  static __device__ __forceinline__ void name(float (&d)[n / 8][4], const unsigned (&a)[4],      \
                                              unsigned long long b, int accumulate) {            \
    asm volatile("{\n.reg .pred more;\nsetp.ne.b32 more, " r5 ", 0;\n"                          \
                 ANNULUS_PRODUCT(n, ANNULUS_FOUR(r0, r1, r2, r3), r4, "more",                    \
                                 ANNULUS_WGMMA_TRANSPOSED(r6)) "}"                               \
                 : ANNULUS_PIECES_##n                                                            \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate),          \
                   "n"(kTransposed)                                                              \
                 : "memory");                                                                    \
  }                                                                                              \
  template <int kTransposed = 0>                                                                 \
  static __device__ __forceinline__ void name(                                                   \
      float (&d)[n / 8][4], const unsigned long long (&a)[4], const unsigned long long (&b)[4],  \
      int accumulate) {                                                                          \
    asm volatile("{\n.reg .pred more, always;\nsetp.ne.b32 more, " r8 ", 0;\n"                  \
                 "setp.eq.b32 always, 0, 0;\n"                                                   \
                 ANNULUS_PRODUCT(n, r0, r4, "more", ANNULUS_WGMMA_END)                           \
                 ANNULUS_PRODUCT(n, r1, r5, "always", ANNULUS_WGMMA_END)                         \
                 ANNULUS_PRODUCT(n, r2, r6, "always", ANNULUS_WGMMA_END)                         \
                 ANNULUS_PRODUCT(n, r3, r7, "always", ANNULUS_WGMMA_END) "}"                     \
                 : ANNULUS_PIECES_##n                                                            \
                 : "l"(a[0]), "l"(a[1]), "l"(a[2]), "l"(a[3]), "l"(b[0]), "l"(b[1]), "l"(b[2]),  \
                   "l"(b[3]), "r"(accumulate)                                                    \
                 : "memory");                                                                    \
  }                                                                                              \
  template <int kTransposed = 0>                                                                 \
  static __device__ __forceinline__ void name(                                                   \
      float (&d)[n / 8][4], const unsigned (&a0)[4], const unsigned (&a1)[4],                    \
      const unsigned (&a2)[4], const unsigned (&a3)[4], const unsigned long long (&b)[4],        \
      int accumulate) {                                                                          \
    asm volatile("{\n.reg .pred more, always;\nsetp.ne.b32 more, " r20 ", 0;\n"                 \
                 "setp.eq.b32 always, 0, 0;\n"                                                   \
                 ANNULUS_PRODUCT(n, ANNULUS_FOUR(r0, r1, r2, r3), r16, "more",                   \
                                 ANNULUS_WGMMA_TRANSPOSED(r21))                                  \
                 ANNULUS_PRODUCT(n, ANNULUS_FOUR(r4, r5, r6, r7), r17, "always",                 \
                                 ANNULUS_WGMMA_TRANSPOSED(r21))                                  \
                 ANNULUS_PRODUCT(n, ANNULUS_FOUR(r8, r9, r10, r11), r18, "always",               \
                                 ANNULUS_WGMMA_TRANSPOSED(r21))                                  \
                 ANNULUS_PRODUCT(n, ANNULUS_FOUR(r12, r13, r14, r15), r19, "always",             \
                                 ANNULUS_WGMMA_TRANSPOSED(r21)) "}"                              \
                 : ANNULUS_PIECES_##n                                                            \
                 : "r"(a0[0]), "r"(a0[1]), "r"(a0[2]), "r"(a0[3]), "r"(a1[0]), "r"(a1[1]),       \
                   "r"(a1[2]), "r"(a1[3]), "r"(a2[0]), "r"(a2[1]), "r"(a2[2]), "r"(a2[3]),       \
                   "r"(a3[0]), "r"(a3[1]), "r"(a3[2]), "r"(a3[3]), "l"(b[0]), "l"(b[1]),         \
                   "l"(b[2]), "l"(b[3]), "r"(accumulate), "n"(kTransposed)                       \
                 : "memory");                                                                    \
  }
#define ANNULUS_WGMMA_COLUMNS(n, ...)                  \
  template <>                                          \
  struct Wgmma<n> {                                    \
    ANNULUS_WGMMA_NAMED(n, ANNULUS_WGMMA_NAME, __VA_ARGS__) \
  };
#define ANNULUS_WGMMA_NAMED(n, name, ...) ANNULUS_WGMMA(n, name, __VA_ARGS__)

// wgmma.mma_async m64nNk16: PTX 8.0, sm_90a. A is in shared memory or in registers, K-major; B is
// in shared memory, K-major or, with kTransposed, MN-major. Without `accumulate`, D = A B; of four
// products the last three always accumulate. m64nNk32 for e4m3 is the same, but B is always
// K-major.
template <int kColumns>
struct Wgmma;
#ifdef ANNULUS_WGMMA_32
ANNULUS_WGMMA_COLUMNS(32, "%16", "%17", "%18", "%19", "%20", "%21", "%22", "%23", "%24", "%25",
                      "%26", "%27", "%28", "%29", "%30", "%31", "%32", "%33", "%34", "%35", "%36",
                      "%37")
#endif
#ifdef ANNULUS_WGMMA_64
ANNULUS_WGMMA_COLUMNS(64, "%32", "%33", "%34", "%35", "%36", "%37", "%38", "%39", "%40", "%41",
                      "%42", "%43", "%44", "%45", "%46", "%47", "%48", "%49", "%50", "%51", "%52",
                      "%53")
#endif
#ifdef ANNULUS_WGMMA_80
ANNULUS_WGMMA_COLUMNS(80, "%40", "%41", "%42", "%43", "%44", "%45", "%46", "%47", "%48", "%49",
                      "%50", "%51", "%52", "%53", "%54", "%55", "%56", "%57", "%58", "%59", "%60",
                      "%61")
#endif
#ifdef ANNULUS_WGMMA_96
ANNULUS_WGMMA_COLUMNS(96, "%48", "%49", "%50", "%51", "%52", "%53", "%54", "%55", "%56", "%57",
                      "%58", "%59", "%60", "%61", "%62", "%63", "%64", "%65", "%66", "%67", "%68",
                      "%69")
#endif
#ifdef ANNULUS_WGMMA_112
ANNULUS_WGMMA_COLUMNS(112, "%56", "%57", "%58", "%59", "%60", "%61", "%62", "%63", "%64", "%65",
                      "%66", "%67", "%68", "%69", "%70", "%71", "%72", "%73", "%74", "%75", "%76",
                      "%77")
#endif
#ifdef ANNULUS_WGMMA_128
ANNULUS_WGMMA_COLUMNS(128, "%64", "%65", "%66", "%67", "%68", "%69", "%70", "%71", "%72", "%73",
                      "%74", "%75", "%76", "%77", "%78", "%79", "%80", "%81", "%82", "%83", "%84",
                      "%85")
#endif
#ifdef ANNULUS_WGMMA_144
ANNULUS_WGMMA_COLUMNS(144, "%72", "%73", "%74", "%75", "%76", "%77", "%78", "%79", "%80", "%81",
                      "%82", "%83", "%84", "%85", "%86", "%87", "%88", "%89", "%90", "%91", "%92",
                      "%93")
#endif
#ifdef ANNULUS_WGMMA_160
ANNULUS_WGMMA_COLUMNS(160, "%80", "%81", "%82", "%83", "%84", "%85", "%86", "%87", "%88", "%89",
                      "%90", "%91", "%92", "%93", "%94", "%95", "%96", "%97", "%98", "%99", "%100",
                      "%101")
#endif
#ifdef ANNULUS_WGMMA_176
ANNULUS_WGMMA_COLUMNS(176, "%88", "%89", "%90", "%91", "%92", "%93", "%94", "%95", "%96", "%97",
                      "%98", "%99", "%100", "%101", "%102", "%103", "%104", "%105", "%106", "%107",
                      "%108", "%109")
#endif
#ifdef ANNULUS_WGMMA_192
ANNULUS_WGMMA_COLUMNS(192, "%96", "%97", "%98", "%99", "%100", "%101", "%102", "%103", "%104",
                      "%105", "%106", "%107", "%108", "%109", "%110", "%111", "%112", "%113",
                      "%114", "%115", "%116", "%117")
#endif
#ifdef ANNULUS_WGMMA_256
ANNULUS_WGMMA_COLUMNS(256, "%128", "%129", "%130", "%131", "%132", "%133", "%134", "%135", "%136",
                      "%137", "%138", "%139", "%140", "%141", "%142", "%143", "%144", "%145",
                      "%146", "%147", "%148", "%149")
#endif
// clang-format on

}  // namespace annulus::ptx

#endif  // ANNULUS_PTX_WGMMA_CUH_
