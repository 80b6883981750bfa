#ifndef ANNULUS_EXCHANGE_MEETING_FILE_H_
#define ANNULUS_EXCHANGE_MEETING_FILE_H_

// The file by which ranks find rank 0 (RendezvousOptions::address "file:PATH").

#include <optional>
#include <string>

#include "annulus/types.h"
#include "base/files.h"
#include "exchange/address.h"

namespace annulus::exchange {

// Why an attempt to find rank 0 came to nothing.
struct Problem {
  ErrorCode code = ErrorCode::kCommunication;
  std::string text = "nothing was tried";
};

// What rank 0 has written; nothing where *problem says why it cannot be used.
std::optional<MeetingFile> read_meeting_file(base::FileSystem& files, const std::string& path,
                                             Problem* problem);

// The file that rank 0 writes, while the ranks meet.
class PublishedFile {
 public:
  // Throws Error{kFile}.
  PublishedFile(base::FileSystem& files, const std::string& path, const MeetingFile& file);
  PublishedFile(const PublishedFile&) = delete;
  PublishedFile& operator=(const PublishedFile&) = delete;
  ~PublishedFile();  // removes it, unless another rank 0 has written over it

 private:
  base::FileSystem& files_;
  const std::string path_;
  const Nonce nonce_;
};

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_MEETING_FILE_H_
