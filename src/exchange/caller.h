#ifndef ANNULUS_EXCHANGE_CALLER_H_
#define ANNULUS_EXCHANGE_CALLER_H_

// A rank of a meeting that looks for rank 0.

#include "base/files.h"
#include "exchange/address.h"
#include "exchange/attendee.h"

namespace annulus::exchange {

// Finds rank 0, says hello and connects to all others. Throws Error{kCommunication, kFile} where
// rank 0 is not reached or ranks do not come, and what rank 0 says of ranks that differ.
World join_meeting(const Self& self, const Address& address, base::FileSystem& files);

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_CALLER_H_
