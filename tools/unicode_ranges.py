#!/usr/bin/env python3
"""Writes src/data/unicode_ranges.inc: the code points of Unicode's categories L (letters) and N (numbers).

Run by hand when Unicode grows; the build only reads the committed file.
"""
import pathlib
import unicodedata


def ranges(category):
    found, begin = [], None
    for code in range(0x110000 + 1):
        inside = code < 0x110000 and unicodedata.category(chr(code))[0] == category
        if inside and begin is None:
            begin = code
        if not inside and begin is not None:
            found.append((begin, code - 1))
            begin = None
    return found


def table(name, category):
    cells = [f"{{0x{a:X}, 0x{b:X}}}," for a, b in ranges(category)]
    lines, line = [], "   "
    for cell in cells:
        if len(line) + 1 + len(cell) > 120:
            lines.append(line)
            line = "   "
        line += " " + cell
    lines.append(line)
    return f"constexpr CodeRange {name}[] = {{\n" + "\n".join(lines) + "\n};\n"


target = pathlib.Path(__file__).resolve().parent.parent / "src/data/unicode_ranges.inc"
target.write_text(
    f"// Written by tools/unicode_ranges.py from Unicode {unicodedata.unidata_version}: first and last of each range.\n"
    + table("kLetterRanges", "L") + table("kNumberRanges", "N"))
