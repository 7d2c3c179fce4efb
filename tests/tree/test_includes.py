"""The rooms' arrows point down: agent -> supervisor -> tracer, landlock. Leaves don't print or exit."""

import os
import pathlib
import re
import unittest

ROOT = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).parents[2]))

# room -> rooms it may include from
ALLOWED = {
    "tracer": {"tracer"},
    "landlock": {"landlock"},
    "supervisor": {"supervisor", "tracer", "landlock"},
    "agent": {"agent", "supervisor", "tracer", "landlock"},
    "bench": {"bench", "supervisor", "tracer", "landlock"},
}
# header -> the one file that may include it
SINGLE = {
    "curl/curl.h": "agent/libcurl.h",
    "cjson/cJSON.h": "tracer/json.c",
    "libunwind.h": "tracer/libunwind.h",
    "md4c.h": "agent/libmd4c.h",
    "zstd.h": "tracer/libzstd.h",
    "Zydis/Zydis.h": "tracer/libzydis.h",
    "histedit.h": "agent/libedit.h",
}
LEAVES = ("tracer", "landlock")
# What the dynamic linker has opened is the whole process's by its nature (tracer/library.h).
LOADED = ("libzstd.c", "libzydis.c")
# What a leaf never does: print, log, end the program, read the environment. util.h's BUG() is the exception.
FORBIDDEN_IN_LEAVES = re.compile(
    r"\b(printf|fprintf|puts|fputs|perror|syslog|exit|getenv|secure_getenv|setenv)\s*\(")
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.M)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)


def sources(room, base=ROOT):
    for pattern in ("*.c", "*.h", "*.def"):
        yield from sorted((base / room).glob(pattern))


def wrong_arrows(base=ROOT):
    """'file includes header' for each include that points up or sideways, or is somebody else's."""
    found = []
    for room, allowed in ALLOWED.items():
        for file in sources(room, base):
            name = str(file.relative_to(base))
            for quote, header in INCLUDE.findall(COMMENT.sub("", file.read_text())):
                if quote == '"' and header.split("/")[0] not in allowed:
                    found.append(f"{name} includes {header}")
                if SINGLE.get(header, name) != name:
                    found.append(f"{name} includes {header}, which is {SINGLE[header]}'s")
    return found


class Includes(unittest.TestCase):
    def test_arrows_point_down(self):
        self.assertEqual(wrong_arrows(), [])

    def test_the_check_sees_an_arrow_that_points_up(self):
        import tempfile
        with tempfile.TemporaryDirectory() as folder:
            base = pathlib.Path(folder)
            for room in ALLOWED:
                (base / room).mkdir()
            (base / "tracer/bad.c").write_text('#include "supervisor/policy.h"\n')
            (base / "landlock/bad.c").write_text('#include "tracer/buf.h"\n')
            (base / "supervisor/bad.c").write_text('#include "agent/turn.h"\n# include <curl/curl.h>\n')
            (base / "agent/good.c").write_text('#include "supervisor/engine.h"\n/* #include "x/y.h" */\n')
            self.assertEqual(len(wrong_arrows(base)), 4)

    def test_leaves_are_silent(self):
        found = []
        for room in LEAVES:
            for file in sources(room):
                if file.name == "util.h":
                    continue
                text = COMMENT.sub("", file.read_text())
                for hit in FORBIDDEN_IN_LEAVES.finditer(text):
                    found.append(f"{file.relative_to(ROOT)}: {hit.group(1)}")
        self.assertEqual(found, [])

    def test_leaves_keep_no_changing_state(self):
        # A file-scope object that is neither const nor a function: "static int x;" at column 0.
        found = []
        state = re.compile(r"^static (?!const\b|inline\b)[\w ]+[\w\*]+(\[[^\]]*\])?( =[^;(]*)?;$", re.M)
        for room in LEAVES:
            for file in sources(room):
                for hit in state.finditer(COMMENT.sub("", file.read_text())):
                    if "const" not in hit.group(0) and file.name not in LOADED:
                        found.append(f"{file.relative_to(ROOT)}: {hit.group(0)}")
        self.assertEqual(found, [])


if __name__ == "__main__":
    unittest.main()
