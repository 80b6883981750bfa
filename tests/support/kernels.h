#ifndef ANNULUS_SUPPORT_KERNELS_H_
#define ANNULUS_SUPPORT_KERNELS_H_

// Small kernels as PTX text, for tests of rooms that load and launch kernels.

namespace annulus::test {

// add(a, b, sum, n): sum[i] = a[i] + b[i] of floats, for i < n.
// scale(p, x): *p *= x, for one element.
// stray(p): writes to *p, even if p is invalid.
// Variable `table`: the four words 10, 20, 30 and 40.
constexpr const char* kKernels = R"(
.version 7.0
.target sm_80
.address_size 64

.visible .global .align 4 .u32 table[4] = {10, 20, 30, 40};

.visible .entry add(.param .u64 a, .param .u64 b, .param .u64 sum, .param .u32 n)
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<9>;
  ld.param.u64 %rd1, [a];
  ld.param.u64 %rd2, [b];
  ld.param.u64 %rd3, [sum];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.u32 %p1, %r5, %r1;
  @%p1 bra done;
  mul.wide.u32 %rd4, %r5, 4;
  add.s64 %rd5, %rd1, %rd4;
  add.s64 %rd6, %rd2, %rd4;
  add.s64 %rd7, %rd3, %rd4;
  ld.global.f32 %f1, [%rd5];
  ld.global.f32 %f2, [%rd6];
  add.f32 %f3, %f1, %f2;
  st.global.f32 [%rd7], %f3;
done:
  ret;
}

.visible .entry scale(.param .u64 p, .param .f32 x)
{
  .reg .f32 %f<4>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [p];
  ld.param.f32 %f1, [x];
  ld.global.f32 %f2, [%rd1];
  mul.f32 %f3, %f2, %f1;
  st.global.f32 [%rd1], %f3;
  ret;
}

.visible .entry stray(.param .u64 p)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, 7;
  st.global.u32 [%rd1], %r1;
  ret;
}
)";

}  // namespace annulus::test

#endif  // ANNULUS_SUPPORT_KERNELS_H_
