"""PTX inside a program that nvcc has made, found and put back in place.

nvcc puts a fat binary into the program's data. With --no-compress its PTX is plain text there:

    header   magic 0xba55ed50 (4), version (2), size of this header (2), size of what follows (8)
    entry    kind (2), version (2), size of this header (4), size of the text (8), ...
    text     padded with zeros

A changed text must fit into the old one's place. It does because comments, blank lines and
indentation are taken out first, and what is left over is filled with newlines.
"""

import re
import struct

MAGIC = struct.pack("<I", 0xBA55ED50)
KIND_PTX = 1


def find(image):
    """Where PTX lies in a program: pairs of first byte and size."""
    found = []
    at = image.find(MAGIC)
    while at >= 0:
        header, size = struct.unpack_from("<HQ", image, at + 6)
        entry, end = at + header, at + header + size
        while entry + 32 <= min(end, len(image)):
            kind, _, head, length = struct.unpack_from("<HHIQ", image, entry)
            if head < 32 or entry + head + length > len(image):
                break
            text = image[entry + head:entry + head + length]
            if kind == KIND_PTX and b".version" in text[:4000]:
                found.append((entry + head, length))
            entry += head + length
        at = image.find(MAGIC, at + 4)
    return found


def texts(image):
    return [image[at:at + size].rstrip(b"\0").decode() for at, size in find(image)]


def compact(text):
    """The same PTX without comments, indentation and blank lines."""
    lines = (re.sub(r"//.*", "", line).strip() for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


def replace(image, index, text):
    """A copy of the program whose PTX number `index` is `text`."""
    at, size = find(image)[index]
    new = compact(text).encode()
    if len(new) >= size:
        raise ValueError(f"the changed PTX has {len(new)} bytes, and its place only {size}")
    return image[:at] + new + b"\n" * (size - 1 - len(new)) + b"\0" + image[at + size:]
