#!/usr/bin/env python3
"""Real images at a size that many networks can be trained on: NPZ files that `norma train --data.path=FILE` reads.

usage: bench/claims/small_images.py DATA FOLDER

DATA has cifar10/data_batch_1.bin.zst and test_batch_2000.bin.zst (CIFAR-10's binary layout) and digits/digits.csv.gz.
FOLDER gets cifar16.npz: all of these images at 16 x 16, each pixel the mean of four; and digits.npz: 8 x 8, the first 1,347
to train on. Needs nothing but Python and zstd.
"""

import gzip
import io
import pathlib
import struct
import subprocess
import sys
import zipfile

SIDE, CHANNELS = 32, 3
RECORD = 1 + SIDE * SIDE * CHANNELS
TAUGHT_DIGITS = 1347


def array(shape, values):
    """An NPY file of bytes."""
    header = "{'descr': '|u1', 'fortran_order': False, 'shape': %r, }" % (tuple(shape),)
    header += " " * (63 - (len(header) + 10) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + bytes(values)


def write(path, arrays):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in arrays.items():
            archive.writestr(zipfile.ZipInfo(name + ".npy", (1980, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)


def halved(record):
    """[16, 16, 3] of the planes of a record, each value the mean of four."""
    small = bytearray((SIDE // 2) ** 2 * CHANNELS)
    for channel in range(CHANNELS):
        plane = record[1 + channel * SIDE * SIDE:1 + (channel + 1) * SIDE * SIDE]
        at = channel
        for row in range(0, SIDE, 2):
            above, below = plane[row * SIDE:(row + 1) * SIDE], plane[(row + 1) * SIDE:(row + 2) * SIDE]
            for column in range(0, SIDE, 2):
                small[at] = (above[column] + above[column + 1] + below[column] + below[column + 1] + 2) // 4
                at += CHANNELS
    return bytes(small)


def cifar(path):
    records = subprocess.run(["zstd", "-dc", path], stdout=subprocess.PIPE, check=True).stdout
    if not records or len(records) % RECORD:
        sys.exit(f"small_images: {path} has {len(records)} bytes; expected records of {RECORD}")
    count = len(records) // RECORD
    images = b"".join(halved(records[i * RECORD:(i + 1) * RECORD]) for i in range(count))
    return array((count, SIDE // 2, SIDE // 2, CHANNELS), images), array((count,), records[::RECORD])


def digits(path):
    rows = [[int(value) for value in line.split(",")] for line in io.TextIOWrapper(gzip.open(path))]
    parts = {"train": rows[:TAUGHT_DIGITS], "test": rows[TAUGHT_DIGITS:]}
    arrays = {}
    for name, part in parts.items():
        arrays["x_" + name] = array((len(part), 8, 8), [value * 15 for row in part for value in row[:64]])
        arrays["y_" + name] = array((len(part),), [row[64] for row in part])
    return arrays


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    data, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    x_train, y_train = cifar(data / "cifar10" / "data_batch_1.bin.zst")
    x_test, y_test = cifar(data / "cifar10" / "test_batch_2000.bin.zst")
    write(folder / "cifar16.npz", {"x_train": x_train, "y_train": y_train, "x_test": x_test, "y_test": y_test})
    write(folder / "digits.npz", digits(data / "digits" / "digits.csv.gz"))


main()
