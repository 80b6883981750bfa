#ifndef ANNULUS_TOOLS_BENCH_DOCUMENT_H_
#define ANNULUS_TOOLS_BENCH_DOCUMENT_H_

// Reads and replaces a table that a program makes, between two marks of a document that people
// write:
//
//   <!-- made by tools/bench/PROGRAM -->
//   ...
//   <!-- end of PROGRAM -->

#include <string>

namespace annulus::bench {

// A document in three parts: up to the first mark, the table, and from the second mark on.
struct Document {
  std::string before, table, after;
};

// Throws Error{kInvalidFile} where the file has no such marks or cannot be read.
Document read_document(const std::string& path, const std::string& program);

// Writes the document with another table. Throws Error{kInvalidFile} where the file cannot be
// written.
void write_document(const std::string& path, const Document& document, const std::string& table);

}  // namespace annulus::bench

#endif  // ANNULUS_TOOLS_BENCH_DOCUMENT_H_
