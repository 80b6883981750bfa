#ifndef ANNULUS_TESTS_OUTSIDE_VARIABLE_H_
#define ANNULUS_TESTS_OUTSIDE_VARIABLE_H_

#include <cstdlib>
#include <optional>
#include <string>

namespace annulus::test {

// Sets an environment variable to another value during its lifetime.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    if (before_) {
      setenv(name_, before_->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_OUTSIDE_VARIABLE_H_
