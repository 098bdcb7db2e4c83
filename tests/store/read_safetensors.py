"""A second, independent reader of safetensors files, standard library only: prints every tensor and metadata entry and
checks norma's checksum (XXH64 of the file with the checksum's digits as zeros)."""
import json
import struct
import sys

MASK = (1 << 64) - 1
P1, P2, P3, P4, P5 = (11400714785074694791, 14029467366897019727, 1609587929392839161, 9650029242287828579,
                      2870177450012600261)


def rotate(value, bits):
    return ((value << bits) | (value >> (64 - bits))) & MASK


def lane_round(lane, word):
    return rotate((lane + word * P2) & MASK, 31) * P1 & MASK


def xxh64(data):
    at = 0
    if len(data) >= 32:
        lanes = [(P1 + P2) & MASK, P2, 0, -P1 & MASK]
        while at + 32 <= len(data):
            lanes = [lane_round(lane, word) for lane, word in zip(lanes, struct.unpack_from("<4Q", data, at))]
            at += 32
        value = sum(rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18))) & MASK
        for lane in lanes:
            value = ((value ^ lane_round(0, lane)) * P1 + P4) & MASK
    else:
        value = P5
    value = (value + len(data)) & MASK
    while at + 8 <= len(data):
        value = (rotate(value ^ lane_round(0, struct.unpack_from("<Q", data, at)[0]), 27) * P1 + P4) & MASK
        at += 8
    if at + 4 <= len(data):
        value = (rotate(value ^ (struct.unpack_from("<I", data, at)[0] * P1 & MASK), 23) * P2 + P3) & MASK
        at += 4
    for byte in data[at:]:
        value = rotate(value ^ (byte * P5 & MASK), 11) * P1 & MASK
    value = (value ^ (value >> 33)) * P2 & MASK
    value = (value ^ (value >> 29)) * P3 & MASK
    return value ^ (value >> 32)


def values(dtype, raw):
    if dtype == "BF16":
        words = struct.unpack(f"<{len(raw) // 2}H", raw)
        return [struct.unpack("<f", struct.pack("<I", word << 16))[0] for word in words]
    code, size = {"F64": ("d", 8), "F32": ("f", 4), "I64": ("q", 8), "I32": ("i", 4), "U8": ("B", 1)}[dtype]
    return struct.unpack(f"<{len(raw) // size}{code}", raw)


def main(path):
    with open(path, "rb") as file:
        content = file.read()
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8:8 + length])
    data = content[8 + length:]
    metadata = header.pop("__metadata__", {})
    end = 0
    for name, tensor in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, stop = tensor["data_offsets"]
        assert begin == end, name
        end = stop
        print(name, tensor["dtype"], tensor["shape"], *values(tensor["dtype"], data[begin:stop]))
    assert end == len(data)
    for key, value in sorted(metadata.items()):
        if key != "norma.checksum":
            print(key, "=", value.replace("\n", "\\n"))
    kind, digits = metadata["norma.checksum"].split(":")
    assert kind == "xxh64" and content.count(digits.encode()) == 1
    computed = xxh64(content.replace(digits.encode(), b"0" * 16))
    print("checksum agrees" if computed == int(digits, 16) else f"checksum {digits} but {computed:016x}")


sys.stdout.reconfigure(encoding="utf-8")
main(sys.argv[1])
