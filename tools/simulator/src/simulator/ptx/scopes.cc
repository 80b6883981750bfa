#include "simulator/ptx/scopes.h"

#include <fmt/core.h>

#include <utility>

namespace annulus::ptx {

void Scopes::open() {
  blocks_.push_back({.parent = current_, .registers = {}, .variables = {}, .labels = {}});
  current_ = static_cast<int>(blocks_.size()) - 1;
}

void Scopes::close() { current_ = blocks_[static_cast<std::size_t>(current_)].parent; }

int Scopes::depth() const {
  int depth = 0;
  for (int at = current_; at > 0; at = blocks_[static_cast<std::size_t>(at)].parent) ++depth;
  return depth;
}

void Scopes::declare_register(const std::string& name, const std::string& type, int bits) {
  const auto index = static_cast<std::int32_t>(function_->registers.size());
  blocks_[static_cast<std::size_t>(current_)].registers[name] = index;
  function_->registers.push_back({name, type, bits});
}

std::int32_t Scopes::find_register(std::string_view name) const {
  return find(name, current_, &Block::registers);
}

void Scopes::declare_variable(Variable variable, std::size_t function_index) {
  const std::size_t index = function_->variables.size();
  blocks_[static_cast<std::size_t>(current_)].variables[variable.name] =
      static_cast<std::int32_t>(index);
  variable.name = fmt::format("{}#{}.{}", variable.name, function_index, index);
  function_->variables.push_back(std::move(variable));
}

std::string Scopes::find_variable(const std::string& name) const {
  const std::int32_t index = find(name, current_, &Block::variables);
  return index < 0 ? name : function_->variables[static_cast<std::size_t>(index)].name;
}

bool Scopes::place_label(const std::string& name) {
  const auto index = static_cast<std::int32_t>(function_->labels.size());
  if (!blocks_[static_cast<std::size_t>(current_)].labels.emplace(name, index).second) return false;
  function_->labels.push_back({name, static_cast<std::uint32_t>(function_->code.size())});
  return true;
}

std::int32_t Scopes::find_label(std::string_view name, int block) const {
  return find(name, block, &Block::labels);
}

std::int32_t Scopes::find(std::string_view name, int block, Names Block::*names) const {
  for (int at = block; at >= 0; at = blocks_[static_cast<std::size_t>(at)].parent) {
    const Names& known = blocks_[static_cast<std::size_t>(at)].*names;
    if (const auto found = known.find(name); found != known.end()) return found->second;
  }
  return -1;
}

}  // namespace annulus::ptx
