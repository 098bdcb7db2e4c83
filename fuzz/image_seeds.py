#!/usr/bin/env python3
"""image_seeds.py FOLDER: a small valid file of each kind of images that norma reads, with nothing but the standard library."""
import gzip, pathlib, struct, sys, zipfile, zlib

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, colour, depth, row_bytes):
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    rows = b"".join(b"\0" + bytes((i * 37 + r) % 256 for i in range(row_bytes)) for r in range(height))
    palette = chunk(b"PLTE", bytes(range(12))) if colour == 3 else b""
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + palette + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def npy(shape, data):
    header = "{'descr': '|u1', 'fortran_order': False, 'shape': %s, }" % (shape,)
    header = header.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


images, labels = npy("(2, 2, 3)", bytes(range(12))), npy("(2,)", b"\0\1")
files = {
    "grey.png": png(3, 2, 0, 8, 3), "colour.png": png(3, 2, 2, 8, 9), "alpha.png": png(3, 2, 6, 8, 12),
    "palette.png": png(4, 2, 3, 2, 1), "deep.png": png(3, 2, 0, 16, 6), "bits.png": png(9, 2, 0, 1, 2),
    "images.idx": b"\0\0\x08\x03" + struct.pack(">III", 2, 2, 3) + bytes(range(12)),
    "labels.idx": b"\0\0\x08\x01" + struct.pack(">I", 2) + b"\0\1",
    "images.idx.gz": gzip.compress(b"\0\0\x08\x03" + struct.pack(">III", 2, 2, 3) + bytes(range(12)), mtime=0),
    "images.npy": images, "batch.bin": b"\1" + bytes(3072),
    # The smallest grey JPEG: 8 x 8, one table of each kind.
    "grey.jpg": bytes.fromhex(
        "ffd8ffdb004300" + "01" * 64 + "ffc0000b080008000801011100ffc4001500010100000000000000000000000000000007"
        "ffc40014100100000000000000000000000000000000ffda0008010100003f0050ffd9"),
}
for name, data in files.items():
    (folder / name).write_bytes(data)
for name, method in (("stored.npz", zipfile.ZIP_STORED), ("deflated.npz", zipfile.ZIP_DEFLATED)):
    with zipfile.ZipFile(folder / name, "w", method) as archive:
        archive.writestr("x_train.npy", images)
        archive.writestr("y_train.npy", labels)
