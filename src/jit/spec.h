#ifndef ANNULUS_JIT_SPEC_H_
#define ANNULUS_JIT_SPEC_H_

// The properties that distinguish one kernel from another of its template, and the few lines of
// source that give them to the compiler:
//
//   // mma_forward for sm_80
//   #include "kernels/mma/mma_forward.cu"
//
//   namespace annulus::kernels {
//   struct Shape {
//     using Element = tile::Bfloat16;
//     enum : int { kDimQk = 128, kDimV = 128, kTileRows = 64, kTileColumns = 64 };
//     enum : bool { kCarryIn = false };
//   };
//   struct Mask {
//     template <typename M>
//     __device__ __forceinline__ static bool visible(const M& m, int q, int k) {
//       return m.causal(q, k);
//     }
//   };
//   template __global__ decltype(mma_forward<Shape, Mask>) mma_forward<Shape, Mask>;
//   }  // namespace annulus::kernels
//
// A spec never holds batch, heads, lengths, strides, offsets or a number of an expression. Those
// are run-time parameters, so that one kernel serves them all.
//
// Constants are enumerators because NVRTC emits every other kind of constant, also an unused one,
// as a global variable of the module.

#include <cstdint>
#include <string>
#include <vector>

#include "jit/arch.h"

namespace annulus::jit {

struct Constant {
  enum class Kind { kInteger, kBoolean, kType };
  Kind kind = Kind::kInteger;
  std::string name;
  std::string value;  // as written: "64", "true", "annulus::tile::Bfloat16"

  static Constant integer(std::string name, std::int64_t value);
  static Constant boolean(std::string name, bool value);
  static Constant type(std::string name, std::string value);
};

// A static device member function that returns one expression.
struct Function {
  std::string declaration;  // "template <typename M> bool visible(const M& m, int q, int k)":
                            // return type and parameters, with a template head or without
  // "m.causal(q, k) & m.window(0, 1, q, k)"; the one statement that it may hold is the return of a
  // lambda "[&](const auto& m) { return E; }"
  std::string expression;
};

struct Struct {
  std::string name;
  std::vector<Constant> constants;
  std::vector<Function> functions;
};

struct KernelSpec {
  std::string family;  // for people: "mma_forward"
  Arch arch;
  std::string file;   // the template that defines the kernel: "kernels/mma/mma_forward.cu"
  std::string entry;  // its name in annulus::kernels: "mma_forward"
  // The kernel's template arguments in order, defined in annulus::kernels after the #include. Empty
  // where the kernel is no template.
  std::vector<Struct> structs;
  // Names that are defined as 1 in front of the #include: which parts of a template the kernel
  // needs (the products in ptx/wgmma.cuh), and variants that are being measured (ptx/variants.cuh).
  std::vector<std::string> defines = {};
  std::string config = {};  // for people: of the family's configurations, where it has several
};

// The specialised source: the same text for equal specs, on every machine. Throws
// Error{kInvalidArgument} where a name is no identifier or an expression could be anything but one
// expression (hygiene against a mistake, not a defence: an expression is device code).
std::string source_text(const KernelSpec& spec);

// "annulus::kernels::mma_forward<annulus::kernels::Shape, ...>", the expression for which NVRTC
// gives the mangled name.
std::string qualified_entry(const KernelSpec& spec);

}  // namespace annulus::jit

#endif  // ANNULUS_JIT_SPEC_H_
