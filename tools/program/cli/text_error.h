#ifndef ANNULUS_PROGRAM_CLI_TEXT_ERROR_H_
#define ANNULUS_PROGRAM_CLI_TEXT_ERROR_H_

// Errors in a text that the user wrote, with an excerpt that shows the place.

#include <functional>
#include <string>
#include <string_view>

#include "annulus/types.h"

namespace annulus::program {

class TextError : public Error {
 public:
  TextError(const Error& error, std::string excerpt)
      : Error(error.code(), error.what()), excerpt_(std::move(excerpt)) {}
  // Two lines, each with a line break: the text around the place, and a caret below the place.
  const std::string& excerpt() const { return excerpt_; }

 private:
  std::string excerpt_;
};

// Calls `parse`. If it throws an Error that begins with "column N: " or "column N of", throws a
// TextError instead. N is counted in bytes of `text` from 1. Other errors pass unchanged.
void parse_shown(std::string_view text, const std::function<void()>& parse);

}  // namespace annulus::program

#endif  // ANNULUS_PROGRAM_CLI_TEXT_ERROR_H_
