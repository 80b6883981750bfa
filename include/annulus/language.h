#ifndef ANNULUS_LANGUAGE_H_
#define ANNULUS_LANGUAGE_H_

// Included by every C++ header, so that a compiler of an older standard says so in one line instead
// of errors in templates.

#if !defined(__cplusplus)
#error "this header of annulus is C++; the C interface is annulus/c.h"
#elif __cplusplus < 202002L
#error "annulus needs C++20: compile with -std=c++20, or include annulus/c.h"
#endif

#endif  // ANNULUS_LANGUAGE_H_
