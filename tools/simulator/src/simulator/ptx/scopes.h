#ifndef ANNULUS_SIMULATOR_PTX_SCOPES_H_
#define ANNULUS_SIMULATOR_PTX_SCOPES_H_

// What names mean inside a function. Each block in braces has registers, variables and labels of
// its own and sees those of the blocks around it. A label may be used before it is placed.

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
  // Registers and labels are added to the function, which must outlive this.
  explicit Scopes(Function& function) : function_(&function), blocks_(1) {}

  void open();
  void close();
  int depth() const;
  int block() const { return current_; }

  void declare_register(const std::string& name, const std::string& type, int bits);
  // Index of the register that the name means here, or -1.
  std::int32_t find_register(std::string_view name) const;

  // Gives the variable a name that no other variable of the module has, since compilers write
  // `param0` before every call. It is the variable's own name, a '#', which no PTX name has, the
  // function's index and a number.
  void declare_variable(Variable variable, std::size_t function_index);
  // The name that declare_variable gave the variable that `name` means here, or `name` itself where
  // it means none of the function.
  std::string find_variable(const std::string& name) const;

  // Places a label before the next instruction. False: this block has a label of that name already.
  bool place_label(const std::string& name);
  // Index of the label that the name means in `block`, or -1. Requires: the function has been read
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
