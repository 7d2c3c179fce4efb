"""The JSON of a run -> a plot of its ratios: SVG, log scale, readable on light and dark pages."""

import math
from xml.sax.saxutils import escape

LEFT, RIGHT, TOP, ROW, BOTTOM = 300, 60, 104, 22, 46
WIDTH = 860
AXIS = (0.7, 200.0)
# mode -> colour on light, on dark, and a mark that can be told without colour
LOOK = {
    "fast": ("#1a7f37", "#3fb950", "circle"),
    "wall": ("#6e7781", "#848d97", "post"),
    "hold": ("#9a6700", "#d29922", "dot"),
    "slow": ("#0969da", "#4493f8", "square"),
    "record": ("#57606a", "#8b949e", "bar"),
    "bwrap": ("#8250df", "#ab7df8", "diamond"),
    "strace-file": ("#bc4c00", "#f0883e", "up"),
    "strace": ("#cf222e", "#f85149", "down"),
}
CALM = 0.2  # the part of the processors that others used at the start, up to which the clock is believed
TICKS = (1, 2, 5, 10, 20, 50, 100, 200)


def style():
    def colours(which):
        return "".join(f".{name}{{fill:{look[which]}}}" for name, look in LOOK.items())
    return ("<style>text{font:12px system-ui,sans-serif;fill:#1f2328}.dim{fill:#59636e}.head{font-weight:600;"
            "font-size:14px}.line{stroke:#d1d9e0}.one{stroke:#59636e}" + colours(0)
            + "@media(prefers-color-scheme:dark){text{fill:#f0f6fc}.dim{fill:#9198a1}.line{stroke:#3d444d}"
              ".one{stroke:#9198a1}" + colours(1) + "}</style>")


def x_of(ratio):
    low, high = (math.log(a) for a in AXIS)
    part = (math.log(min(max(ratio, AXIS[0]), AXIS[1])) - low) / (high - low)
    return round(LEFT + part * (WIDTH - LEFT - RIGHT), 1)


def mark(name, x, y, r=5):
    shape = LOOK[name][2]
    if shape == "circle":
        return f'<circle class="{name}" cx="{x}" cy="{y}" r="{r}"/>'
    if shape == "dot":
        return f'<circle class="{name}" cx="{x}" cy="{y}" r="{r - 2}"/>'
    points = {
        "post": ((-1, -8), (1, -8), (1, 8), (-1, 8)),
        "bar": ((-1.5, -6), (1.5, -6), (1.5, 6), (-1.5, 6)),
        "square": ((-4, -4), (4, -4), (4, 4), (-4, 4)),
        "diamond": ((0, -6), (6, 0), (0, 6), (-6, 0)),
        "up": ((0, -6), (5.5, 4), (-5.5, 4)),
        "down": ((0, 6), (5.5, -4), (-5.5, -4)),
    }[shape]
    text = " ".join(f"{round(x + dx, 1)},{round(y + dy, 1)}" for dx, dy in points)
    return f'<polygon class="{name}" points="{text}"/>'


def text(x, y, words, look="", anchor="start"):
    return f'<text class="{look}" x="{x}" y="{y}" text-anchor="{anchor}">{escape(words)}</text>'


def line(x1, y1, x2, y2, look):
    return f'<line class="{look}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>'


def legend(modes):
    parts, x, y = [], 14, 44
    for mode in modes:
        width = 34 + 6.6 * len(mode["title"])
        if x + width > WIDTH:
            x, y = 14, y + 20
        parts += [mark(mode["name"], x, y), text(x + 10, y + 4, mode["title"])]
        x += width
    return parts


def axis(bottom):
    parts = []
    for tick in TICKS:
        x = x_of(tick)
        parts += [line(x, TOP - 8, x, bottom, "one" if tick == 1 else "line"),
                  text(x, bottom + 16, f"{tick}×", "dim", "middle")]
    return parts


def is_busy(result):
    return result["machine"]["busy_before"] > CALM


def quartiles(cell, name, y):
    ends = [x_of(cell["ratio"] * cell[q] / cell["median_ms"]) for q in ("q1_ms", "q3_ms")]
    return (f'<rect class="{name}" x="{ends[0]}" y="{y - 0.75}" height="1.5" '
            f'width="{round(ends[1] - ends[0], 1)}"/>')


def row(workload, y, key):
    cells = workload["cells"]
    parts = [text(LEFT - 16, y + 4, workload["title"], anchor="end")]
    # The one that matters most is drawn last.
    for name in reversed(LOOK):
        if name in cells:
            if key == "ratio":
                parts.append(quartiles(cells[name], name, y))
            parts.append(mark(name, x_of(cells[name][key]), y))
    if "fast" in cells:
        parts.append(text(WIDTH - 8, y + 4, f'{cells["fast"][key]:.2f}', "dim", "end"))
    return parts


def svg(result):
    modes = [m for m in result["modes"] if m["name"] in LOOK and "skipped" not in m]
    whole = [w for w in result["workloads"] if not w["apart"]]
    apart = [w for w in result["workloads"] if w["apart"]]
    gap = ROW if whole and apart else 0
    bottom = TOP + ROW * len(result["workloads"]) + gap
    # The clock of a busy machine tells of others; processor time is what is left to believe.
    busy = is_busy(result)
    time, key = ("Processor time", "cpu_ratio") if busy else ("Time", "ratio")
    parts = [text(8, 20, f"{time}, as a multiple of the same command's unwatched", "head"), *legend(modes),
             text(WIDTH - 8, TOP - 12, "warder", "dim", "end"), *axis(bottom)]
    for i, workload in enumerate(whole + apart):
        y = TOP + ROW // 2 + i * ROW + (gap if workload["apart"] else 0)
        parts += row(workload, y, key)
    if gap:
        y = TOP + ROW * len(whole) + ROW // 2
        parts += [line(8, y, WIDTH - 8, y, "line")]
    machine = result["machine"]
    parts.append(text(8, bottom + 38, f'{machine["cpu"]}, {machine["cpus"]} CPUs, Linux {machine["kernel"]}. '
                      + (f"{machine['busy_before'] * 100:.0f} % busy with other things. " if busy else "")
                      + "Log scale; medians of interleaved runs" + ("." if busy else ", and their quartiles."), "dim"))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + BOTTOM}" '
            f'width="{WIDTH}" height="{bottom + BOTTOM}" role="img">{style()}\n' + "\n".join(parts) + "\n</svg>\n")
