#ifndef ANNULUS_JIT_SPEC_H_
#define ANNULUS_JIT_SPEC_H_

// The properties that distinguish kernels of one template, and the few lines of source that pass
// them to the compiler:
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
// A spec never contains batch, heads, lengths, strides, offsets or numbers of an expression. They
// are run-time parameters, so that one kernel serves all values.
//
// Constants are enumerators, because NVRTC emits every other kind of constant as a global variable
// of the module, even if it is unused.

#include <cstdint>
#include <string>
#include <vector>

#include "jit/arch.h"

namespace annulus::jit {

struct Constant {
  enum class Kind { kInteger, kBoolean, kType };
  Kind kind = Kind::kInteger;
  std::string name;
  std::string value;  // in source form: "64", "true", "annulus::tile::Bfloat16"

  static Constant integer(std::string name, std::int64_t value);
  static Constant boolean(std::string name, bool value);
  static Constant type(std::string name, std::string value);
};

// A static device member function that returns one expression.
struct Function {
  // return type and parameters, optionally after a template head: "template <typename M> bool
  // visible(const M& m, int q, int k)"
  std::string declaration;
  // For example "m.causal(q, k) & m.window(0, 1, q, k)". The only statement that it may contain is
  // the return of a lambda "[&](const auto& m) { return E; }".
  std::string expression;
};

struct Struct {
  std::string name;
  std::vector<Constant> constants;
  std::vector<Function> functions;
};

struct KernelSpec {
  std::string family;  // the name for users: "mma_forward"
  Arch arch;
  std::string file;   // the template that defines the kernel: "kernels/mma/mma_forward.cu"
  std::string entry;  // its name in annulus::kernels: "mma_forward"
  // The kernel's template arguments in order. They are defined in annulus::kernels after the
  // #include. Empty if the kernel is not a template.
  std::vector<Struct> structs;
  // Names that are defined as 1 before the #include. They select the parts of a template that the
  // kernel needs (the products in ptx/wgmma.cuh), and variants that are being measured
  // (ptx/variants.cuh).
  std::vector<std::string> defines = {};
  std::string config = {};  // the configuration for users, if the family has several
};

// The specialised source. Equal specs give the same text on every machine. Throws
// Error{kInvalidArgument} if a name is not an identifier, or if an expression could be something
// other than one expression. The check finds mistakes; it is not a defence against attacks, because
// an expression is device code.
std::string source_text(const KernelSpec& spec);

// The expression for which NVRTC returns the mangled name:
// "annulus::kernels::mma_forward<annulus::kernels::Shape, ...>".
std::string qualified_entry(const KernelSpec& spec);

}  // namespace annulus::jit

#endif  // ANNULUS_JIT_SPEC_H_
