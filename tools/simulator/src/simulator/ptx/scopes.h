#ifndef ANNULUS_SIMULATOR_PTX_SCOPES_H_
#define ANNULUS_SIMULATOR_PTX_SCOPES_H_

// The meaning of names inside a function. Each block in braces has its own registers, variables and
// labels, and sees those of the blocks around it. A label may be used before it is placed.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/ptx/module.h"

namespace annulus::ptx {

class Scopes {
 public:
  // Registers and labels are added to the function, which must outlive this object.
  explicit Scopes(Function& function) : function_(&function), blocks_(1) {}

  void open();
  void close();
  int depth() const;
  int block() const { return current_; }

  void declare_register(const std::string& name, const std::string& type, int bits);
  // The index of the register with this name in the current block, or -1.
  std::int32_t find_register(std::string_view name) const;

  // Gives the variable a name that no other variable of the module has, because compilers write
  // `param0` before every call. The new name is the variable's name, a '#', which no PTX name
  // contains, the function's index and a number.
  void declare_variable(Variable variable, std::size_t function_index);
  // The name that declare_variable gave the variable `name` of the current block. If the function
  // has no such variable, it is `name` itself.
  std::string find_variable(const std::string& name) const;

  // Places a label before the next instruction. Returns false if this block has a label of that
  // name already.
  bool place_label(const std::string& name);
  // The index of the label with this name in `block`, or -1. Requires: the function has been read
  // to its end.
  std::int32_t find_label(std::string_view name, int block) const;

 private:
  using Names = std::map<std::string, std::int32_t, std::less<>>;
  struct Block {
    int parent = -1;
    Names registers;
    Names variables;
    Names labels;
  };

  std::int32_t find(std::string_view name, int block, Names Block::*names) const;

  Function* function_;
  std::vector<Block> blocks_;
  int current_ = 0;
};

}  // namespace annulus::ptx

#endif  // ANNULUS_SIMULATOR_PTX_SCOPES_H_
