#!/usr/bin/env python3
"""Plants bugs in the norms, one after another, and checks that norms_test notices each of them.

tests/norms/planted_bugs.py [BUILD [WORDS]]: works on a copy of the sources in BUILD (a folder of its own, build/planted
otherwise); with WORDS only the bugs whose description has them. Exit code 1 when a bug survives.
"""
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# file, what is there, what stands there instead
BUGS = [
    ("row_norm-inl.h", "between = hn::MulAdd(hn::Mul(delta, hn::Set(d, before * kChunk)), step, between);", "",
     "the chunks of a row differ in mean"),
    ("row_norm-inl.h", " + delta * delta * (a.count * b.count / count)", "", "the end of a row differs in mean"),
    ("row_norm-inl.h", "if (mean_out != nullptr) mean_out[first + r] = statistics[r].mean;",
     "if (mean_out != nullptr) mean_out[first + r] = statistics[0].mean;", "wide rows share a saved mean"),
    ("row_norm-inl.h", "for (int k = 2; k < layout.terms; ++k)", "for (int k = 2; k < layout.terms - 1; ++k)",
     "the last of three terms is lost"),
    ("row_norm-inl.h", "stride == 0 ? hn::Set(d, *scale) : hn::LoadU(d, scale + i)", "hn::Set(d, *scale)",
     "every channel has the scale of the first"),
    ("row_norm-inl.h", "scale.index < 0 ? x :", "k > 0 || scale.index < 0 ? x :", "only the first term is scaled"),
    ("row_backward_cache-inl.h", "if (kFinish && layout_.scaled > 0)", "if (kFinish && kBegin && layout_.scaled > 0)",
     "the last row of a tile is not scaled"),
    ("row_backward_memory-inl.h", "term < layout.scaled", "term < 1 && term < layout.scaled",
     "the second scaled gradient from memory is lost"),
    ("layer.cpp", "T{1} / std::sqrt(squares / count + eps)", "T{1} / (std::sqrt(squares / count) + eps)",
     "eps outside the root"),
    ("layer.cpp", "T{1} / std::sqrt(squares / count + eps)", "T{1} / std::sqrt(squares / (count - static_cast<T>(0.01)) + eps)",
     "another divisor of the variance"),
    ("row_gradient-inl.h", "hn::MulSub(g, hn::Set(d, row.scale), hn::Set(d, row.shift))",
     "hn::Mul(g, hn::Set(d, row.scale))", "the mean of g stays"),
    ("row_backward_cache-inl.h", "pass<true, false, Gather::finished>(row);", "pass<true, false, Gather::none>(row);",
     "the last of an odd number of rows adds nothing to dgain"),
    ("row_gradient-inl.h", "for (int k = 0; k < layout.residuals; ++k)",
     "for (int k = 0; k < 1 && k < layout.residuals; ++k)", "the second residual is lost"),
    ("row_backward_memory-inl.h", "for (; row < end; ++row) row_backward_block", "if (row > end) row_backward_block",
     "the last of an odd number of rows from memory is lost"),
    ("row_backward_memory-inl.h", "begin = end, end = width, row.pull = 0)", "begin = end, end = width)",
     "channels from memory that do not count are pulled"),
    ("row_backward_cache-inl.h", "begin = end, end = width, finish.pull = 0)", "begin = end, end = width)",
     "channels that do not count are pulled"),
    ("store-inl.h", "for (; i + lanes <= n; i += lanes) store_as<kStores>(value(d, i), d, out + i);",
     "for (; i + 2 * lanes <= n; i += lanes) store_as<kStores>(value(d, i), d, out + i);\n  i = n / lanes * lanes;",
     "one vector of some widths is not written"),
    ("scale.cpp", "T{1} / (norm < eps ? eps : norm)", "T{1} / std::max(eps, norm)", "NaN becomes eps"),
    ("scale.cpp", "return rstd < T{1} / eps ? T{1} : T{0};", "return T{1};", "rows shorter than eps are pulled"),
    ("channel_kernels.cpp", "hn::Add(hn::LoadU(d, around + i), apart)", "hn::LoadU(d, around + i)",
     "blocks of rows differ in mean"),
    ("channel_kernels.cpp", "return hn::NegMulAdd(centred, hn::LoadU(d, pull + i), direct);", "return direct;",
     "the variance does not follow x"),
    ("dyt.cpp", "tanh(d, hn::Mul(x, alpha))", "hn::Mul(x, alpha)", "the slope is that of another point"),
]


def run(command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)


def build(folder):
    result = run(["cmake", "--build", str(folder / "build"), "--target", "norms_test"])
    if result.returncode != 0:
        sys.exit("it does not build:\n" + result.stdout[-2000:])


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "planted").resolve()
    source = folder / "source"
    shutil.rmtree(source, ignore_errors=True)
    # With new times of change: objects of an earlier run may hold its last bug.
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns("build", ".git", "node_modules"),
                    copy_function=shutil.copy)
    configured = run(["cmake", "-S", str(source), "-B", str(folder / "build"), "-G", "Ninja",
                      "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O1", "-DNORMA_WARNINGS_AS_ERRORS=OFF"])
    if configured.returncode != 0:
        sys.exit(configured.stdout[-2000:])
    build(folder)
    test = folder / "build" / "tests" / "norms_test"
    if run([str(test)]).returncode != 0:
        sys.exit("norms_test fails without a planted bug")
    survivors = 0
    chosen = [bug for bug in BUGS if len(sys.argv) < 3 or sys.argv[2] in bug[3]]
    for name, before, after, what in chosen:
        path = source / "src" / "norms" / name
        text = path.read_text()
        if text.count(before) < 1:
            sys.exit(f"{name} no longer has: {before}")
        path.write_text(text.replace(before, after))
        build(folder)
        # "[  FAILED  ] Norms/NormConformance.SurvivesALargeMean/layer, where GetParam() = ..."
        failed = [line.removeprefix("[  FAILED  ] ").split(",")[0].split()[0]
                  for line in run([str(test)]).stdout.splitlines() if line.startswith("[  FAILED  ]")]
        suites = sorted({"/".join(test.split("/")[1:2]) or test for test in failed if "." in test})
        print(f"{'noticed ' if failed else 'SURVIVED'}  {name}: {what}; {', '.join(suites[:3])}", flush=True)
        survivors += not failed
        path.write_text(text)
    print(f"{len(chosen) - survivors} of {len(chosen)} planted bugs were noticed")
    sys.exit(1 if survivors else 0)


if __name__ == "__main__":
    main()
