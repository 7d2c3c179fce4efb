#!/usr/bin/env python3
"""
man.py NAME SECTION TITLE WARDER FILE...: Markdown pages as one manual page for scdoc, on stdout.

So the manual and docs/ are the same words. What stands alone on a line is put in:
    @HELP run@     the subcommand's own --help all: synopsis, words and options, as the program prints it
    @OTHERS run@   a chapter for every other subcommand, with its --help
    @SOURCE PATH@  a file of the sources, as it is (a header)
"""

import os
import re
import subprocess
import sys

CODE_WIDTH = 80 - 7 - 4  # what is left of a terminal where man indents a page's text, and scdoc its code

def escape(text):
    return re.sub(r"([\\*_#`~\[\]|<>])", r"\\\1", text)


def inline(text):
    """`code`, **bold**, *emphasis* and [text](link); the rest is escaped."""
    out = []
    for part in re.split(r"(`[^`]+`|\*\*[^*]+\*\*|(?<!\*)\*[^*\s][^*]*\*(?!\*)|\[[^\]]*\]\([^)]*\))", text):
        if part.startswith("`") and len(part) > 1:
            out.append("*" + escape(part[1:-1]) + "*")
        elif part.startswith("**") and len(part) > 4:
            out.append("*" + escape(part[2:-2]) + "*")
        elif part.startswith("*") and len(part) > 2:
            out.append("_" + escape(part[1:-1]) + "_")
        elif part.startswith("[") and "](" in part:
            out.append(inline(part[1:part.index("](")]))
        else:
            out.append(escape(part))
    return "".join(out)


def plain(line):
    """A line of text: what would begin something in scdoc does not."""
    return re.sub(r"^([.'])", r"\\\1", inline(line))


# What stands beside a line and can stand above or below it: a comment, or an example's words.
BESIDE = re.compile(r"^(?P<indent> *)(?P<line>[^\s*].*?) +(?P<comment>/\*.*\*/|# .*)$|^(?P<at> *)(?P<left>[^\s*]\S* .*?)   +(?P<words>\S.*)$")
COMMENT = re.compile(r"^ *\* *(?=\S)|^ *(?:/\*|#) ")
SHELL = re.compile(r"^ *(?:\$ )?(?:warder|ls|git|tmux) ")


def last_gap(line, begin, end, prose):
    """The last blank before end that may be a line's end: not in a string, and not before the end of a comment."""
    at = line.rfind(" ", begin, end)
    while at > begin and (line[at:] == " */" if prose else re.sub(r"\\.", "", line[:at]).count('"') % 2):
        at = line.rfind(" ", begin, at)
    return at


def broken(line, width=CODE_WIDTH):
    """A line that is too long, as several that say the same; a string without a blank is broken after a comma."""
    if len(line) <= width:
        return [line]
    beside = BESIDE.match(line)
    if beside and beside["comment"]:
        return broken(beside["indent"] + beside["comment"]) + broken(beside["indent"] + beside["line"])
    if beside:
        return broken(beside["at"] + beside["left"]) + broken(beside["at"] + "    " + beside["words"])
    comment = COMMENT.match(line)
    indent = re.match(" *", line).group()
    prefix = (comment.group() if comment else indent + "    ").replace("/*", "  ")
    shell = " \\" if SHELL.match(line) else ""
    at = last_gap(line, len(indent) + 1, width + 1 - len(shell), bool(comment))
    if at <= len(prefix):
        at = line.rfind(",", 0, width) + 1
    if at <= len(indent) + 1:
        return [line]
    return [line[:at].rstrip() + shell, *broken(prefix + line[at:].lstrip())]


def joined(lines):
    """Comments of several lines as one each, to be broken anew."""
    out = []
    for line in lines:
        before = re.match(r"( *(?:/\*|\*)) \S", out[-1]) if out else None
        if before and re.match(r" *\* \w", line) and len(out[-1]) > CODE_WIDTH - 20 and "*/" not in out[-1]:
            out[-1] += " " + line.lstrip(" *")
        else:
            out.append(line)
    return out


def code(lines):
    """As it is, but for what would not fit. scdoc's fence can't be told apart from one inside."""
    lines = [re.sub(r"\t", "    ", line) for line in lines]
    common = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    lines = [line[common:] for line in lines]
    if any(len(line) > CODE_WIDTH for line in lines):
        lines = [part for line in joined(lines) for part in broken(line)]
    return ["```", *[line.replace("```", "'''").replace("\\", "\\\\") for line in lines], "```", ""]


def table(rows):
    cells = [[c.strip() for c in re.split(r"(?<!\\)\|", row.strip().strip("|"))] for row in rows]
    out = []
    for i, row in enumerate(cells):
        if i == 1 and all(re.fullmatch(r":?-+:?", c) for c in row):
            continue
        for k, cell in enumerate(row):
            text = inline(cell.replace("\\|", "|")) or " "
            out.append(("[[ " if i == 0 and k == 0 else "|[ " if k == 0 else ":[ ") + text)
    return [*out, ""]


OPTION = re.compile(r"^  (?:    )?(-{1,2}\S.*?)(?:  +(.*))?$")
# Where the column is too narrow: "--output text|json WORDS".
TIGHT = re.compile(r"^  (?:    )?((?:-\w, )?--[a-z-]+ \w[\w-]*(?:\|[\w-]+)+) ((?!-)\S.*)$")
CONTINUED = re.compile(r"^ {14,}(\S.*)$")


def helps(warder, subcommand, *more):
    """The synopsis as code, the words as text, each option as an entry."""
    text = subprocess.run([warder, subcommand, "--help", *more], check=True, capture_output=True, text=True).stdout
    out, lines = [], text.splitlines()
    synopsis = []
    while lines and (lines[0].startswith("Usage:") or lines[0].startswith("       ")):
        synopsis.append(lines.pop(0)[7:])
    out += code(synopsis)
    rest = []
    after_option = False
    for line in lines:
        m = TIGHT.match(line) or OPTION.match(line)
        more = CONTINUED.match(line)
        if more and after_option and not rest:
            out[-1:] = ["\t" + escape(more.group(1)), ""]
            continue
        after_option = bool(m and m.group(2))
        if not after_option:
            rest.append(line)
            continue
        out += flush(rest)
        name = re.sub(r"-{1,2}[a-z][a-z-]*", lambda o: "*" + o.group(0) + "*", m.group(1))
        name = re.sub(r"(?<![*a-z-])([A-Z']\S*|\w+(?:\|\w+)+)", lambda v: "_" + escape(v.group(1)) + "_", name)
        out += [name, "\t" + escape(m.group(2)), ""]
    return out + flush(rest)


def chapters(warder, but):
    """Every subcommand that is for people; the program says which."""
    listed = subprocess.run([warder, "complete", "1", "warder"], check=True, capture_output=True,
                            text=True).stdout
    out = []
    for name in [line.split("\t")[0] for line in listed.splitlines()]:
        if name != but and not name.startswith("-"):
            out += ["", f"# WARDER {name.upper()}", "", *helps(warder, name)]
    return out


def flush(lines):
    """What is no option: indented lines are examples or columns, others a paragraph."""
    out = []
    while lines:
        n = 0
        indented = lines[0].startswith(" ")
        while n < len(lines) and lines[n] and lines[n].startswith(" ") == indented:
            n += 1
        block, lines[:] = lines[:n], lines[n or 1:]
        if block:
            out += code(block) if indented else [escape(line) for line in block] + [""]
    return out


def is_block(line):
    return not line.strip() or re.match(r"(#{1,6} |```|\||- |\* |\d+\. |@)", line)


def listed(line, lines):
    """An item with the lines that belong to it."""
    text = [line[line.index(" ") + 1:]]
    while lines and lines[0].startswith("  ") and lines[0].strip():
        text.append(lines.pop(0).strip())
    return ["- " + plain(text[0]), *["  " + plain(t) for t in text[1:]]]


def convert(lines, warder):
    """Headings go one level down to scdoc's own: the page's title is the caller's."""
    out = []
    while lines:
        line = lines.pop(0)
        m = re.match(r"@(HELP|OTHERS|SOURCE) (\S+)@$", line)
        if m and m.group(1) == "HELP":
            out += helps(warder, m.group(2), "all")
        elif m and m.group(1) == "OTHERS":
            out += chapters(warder, m.group(2))
        elif m:
            with open(os.path.join(os.path.dirname(__file__), "..", m.group(2)), encoding="utf-8") as f:
                out += code(f.read().splitlines())
        elif line.startswith("```"):
            block = []
            while lines and not lines[0].startswith("```"):
                block.append(lines.pop(0))
            lines[:1] = []
            out += code(block)
        elif line.startswith("|"):
            rows = [line]
            while lines and lines[0].startswith("|"):
                rows.append(lines.pop(0))
            out += table(rows)
        elif line.startswith("#"):
            level, title = line.split(" ", 1)
            title = title.replace("`", "")
            out += ["", "# " + escape(title.upper()) if len(level) <= 2 else "## " + escape(title), ""]
        elif re.match(r"[-*] |\d+\. ", line):
            out += listed(line, lines)
            if lines and not lines[0].strip():
                out.append("")
        elif line.strip():
            text = [plain(line)]
            while lines and not is_block(lines[0]):
                text.append(plain(lines.pop(0)))
            out += [*text, ""]
    return out


def page(name, section, title, warder, files):
    out = [f"{name}({section})", "", "# NAME", "", f"{name} - {escape(title)}", ""]
    for file in files:
        with open(file, encoding="utf-8") as f:
            lines = f.read().splitlines()
        if len(files) == 1 or file == files[0]:
            if lines and lines[0].startswith("# "):
                lines.pop(0)
        out += convert(lines, warder)
    text = "\n".join(out)
    return re.sub(r"\n{3,}", "\n\n", text) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page(*sys.argv[1:5], sys.argv[5:]))
