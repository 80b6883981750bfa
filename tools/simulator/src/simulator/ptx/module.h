#ifndef ANNULUS_SIMULATOR_PTX_MODULE_H_
#define ANNULUS_SIMULATOR_PTX_MODULE_H_

// A parsed PTX module: declarations, functions, instructions, line information (PTX ISA 9.0,
// section 4, syntax, and section 11, directives). Opcodes have no meaning at this stage.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace annulus::ptx {

enum class Space : std::uint8_t { kNone, kGlobal, kShared, kLocal, kConst, kParam };

enum class OperandKind : std::uint8_t {
  kRegister,   // reg
  kImmediate,  // bits
  kSymbol,     // text (+ offset): a variable, parameter or function
  kSpecial,    // text: %tid.x, %laneid, ...
  kAddress,    // [reg + offset], [symbol + offset] or [immediate]
  kVector,     // {a, b, ...}: elements
  kPair,       // p|q: elements
  kList,       // (a, b, ...): elements, only of call
  kLabel,      // label index, only of bra
  kSink,       // _
};

struct Operand {
  OperandKind kind = OperandKind::kSink;
  bool negated = false;     // !p
  bool is_float = false;    // an immediate written as 0f..., 0d... or with a point
  std::int32_t reg = -1;    // index into Function::registers
  std::int64_t offset = 0;  // added to an address or symbol
  std::uint64_t bits = 0;   // an immediate: two's complement, or the bits of a double
  std::int32_t label = -1;  // index into Function::labels
  std::string text;         // symbol (the name of its Variable) or special register
  std::vector<Operand> elements;
};

struct Instruction {
  std::string opcode;                  // "add"
  std::vector<std::string> modifiers;  // "sat", "s32": the words after the opcode
  std::vector<Operand> operands;
  std::int32_t guard = -1;  // predicate register, or -1
  bool guard_negated = false;
  std::uint32_t used_bytes = ~0u;  // a load's .pragma "used_bytes_mask", one bit for each byte
  int line = 0;                    // in the PTX text
  int location = -1;               // index into Module::locations

  bool has(const char* modifier) const;
  std::string name() const;  // "add.sat.s32"
};

struct Register {
  std::string name;
  std::string type;  // "b32", "f32", "pred", ...
  int bits = 0;      // 1 for a predicate
};

// Eight bytes of an initial value that contain the address of a variable.
struct Relocation {
  std::uint64_t offset = 0;  // in the variable that contains the address
  std::string symbol;
  std::uint64_t addend = 0;
};

// A .global, .const, .shared, .local or .param variable.
struct Variable {
  std::string name;
  Space space = Space::kNone;
  std::uint64_t alignment = 1;
  std::uint64_t bytes = 0;  // 0: extern shared memory, whose size the launch gives
  bool external = false;
  std::vector<std::uint8_t> initial;  // the first bytes; all others are zero
  std::vector<Relocation> relocations;
};

struct Label {
  std::string name;
  std::uint32_t target = 0;  // index into Function::code
};

struct Function {
  std::string name;
  bool entry = false;
  bool declaration = false;  // no body
  std::vector<Variable> results;
  std::vector<Variable> parameters;
  std::vector<Register> registers;
  std::vector<Variable> variables;  // declared in the body; their names end in '#' and a number
  std::vector<Label> labels;
  std::vector<Instruction> code;
  std::uint32_t max_threads = 0;         // product of .maxntid or .reqntid; 0: not given
  std::uint32_t max_registers = 0;       // .maxnreg; 0: not given
  std::uint32_t min_ctas = 0;            // .minnctapersm; 0: not given
  std::uint32_t cluster[3] = {0, 0, 0};  // .reqnctapercluster; 0: not given
  int line = 0;
};

// A .loc directive: a source line, and the place where that line was inlined.
struct Location {
  int file = 0;  // number of the .file directive
  int line = 0;
  int inlined_at = -1;  // index into Module::locations
};

struct Module {
  int version_major = 0;
  int version_minor = 0;
  std::string target;  // "sm_80"
  std::vector<Variable> variables;
  std::vector<Function> functions;
  std::vector<Location> locations;
  std::vector<std::pair<int, std::string>> files;  // number, name

  const std::string* file_name(int number) const;  // null if there is no such file
};

// An instruction as text, with the names of its registers.
std::string to_string(const Function& function, const Instruction& instruction);

}  // namespace annulus::ptx

#endif  // ANNULUS_SIMULATOR_PTX_MODULE_H_
