"""A second, independent reader of TensorBoard event files, standard library only: checks frames and checksums, decodes
protobuf by its wire format, drops at a restart what TensorBoard drops, and prints what is left."""
import os
import struct
import sys


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(data):
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(path):
    with open(path, "rb") as file:
        content = file.read()
    at = 0
    while at < len(content):
        (length, length_crc) = struct.unpack_from("<QI", content, at)
        assert masked(content[at:at + 8]) == length_crc, "checksum of the length"
        body = content[at + 12:at + 12 + length]
        (body_crc,) = struct.unpack_from("<I", content, at + 12 + length)
        assert len(body) == length and masked(body) == body_crc, "checksum of the record"
        yield body
        at += 16 + length


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 0x80:
            return value, at


def fields(data):
    found, at = {}, 0
    while at < len(data):
        key, at = varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = varint(data, at)
        elif wire == 1:
            (value,), at = struct.unpack_from("<d", data, at), at + 8
        elif wire == 5:
            (value,), at = struct.unpack_from("<f", data, at), at + 4
        else:
            assert wire == 2, wire
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        found.setdefault(number, []).append(value)
    assert at == len(data)
    return found


def describe_histogram(data):
    histogram = fields(data)
    ends, counts = (struct.unpack(f"<{len(histogram[n][0]) // 8}d", histogram[n][0]) for n in (6, 7))
    assert len(ends) == len(counts) and list(ends) == sorted(ends)
    head = " ".join(f"{name}={histogram[n][0]}" for n, name in enumerate(("min", "max", "num", "sum", "sum_squares"), 1))
    return f"{head} filled={[count for count in counts if count]}"


def main(directory):
    kept = {}
    for index, name in enumerate(sorted(os.listdir(directory))):
        assert "tfevents" in name, name
        versions = starts = 0
        walls = []
        for number, record in enumerate(records(os.path.join(directory, name))):
            event = fields(record)
            step = event.get(2, [0])[0]
            if 3 in event:
                assert number == 0 and event[3] == [b"brain.Event:2"]
                versions += 1
            elif 7 in event:
                assert fields(event[7][0]) == {1: [1]}
                starts += 1
                kept = {tag: [item for item in items if item[0] < step] for tag, items in kept.items()}
            else:
                walls.append(event[1][0])
                for value in fields(event[5][0])[1]:
                    summary = fields(value)
                    text = describe_histogram(summary[5][0]) if 5 in summary else summary[2][0]
                    kept.setdefault(summary[1][0].decode(), []).append((step, text))
        print(f"file {index}: version {versions} start {starts} wall {min(walls)}..{max(walls)}")
    for tag in sorted(kept):
        for step, text in kept[tag]:
            print(tag, step, text)


main(sys.argv[1])
