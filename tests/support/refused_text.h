#ifndef ANNULUS_TESTS_SUPPORT_REFUSED_TEXT_H_
#define ANNULUS_TESTS_SUPPORT_REFUSED_TEXT_H_

// Checks of texts that a parser must reject, and of the place that its error names.

#include <doctest/doctest.h>

#include <string>

#include "annulus/types.h"

namespace annulus::test {

// Checks that parse(text) throws an Error that begins with the column and contains `part`.
template <typename Parse>
void refused_text(const Parse& parse, const std::string& text, std::size_t column,
                  const std::string& part, ErrorCode code = ErrorCode::kParse) {
  CAPTURE(text);
  try {
    parse(text);
    FAIL("it parses");
  } catch (const Error& error) {
    const std::string message = error.what();
    CAPTURE(message);
    CHECK(error.code() == code);
    CHECK(message.starts_with("column " + std::to_string(column) + ":"));
    CHECK(message.find(part) != std::string::npos);
  }
}

}  // namespace annulus::test

#endif  // ANNULUS_TESTS_SUPPORT_REFUSED_TEXT_H_
