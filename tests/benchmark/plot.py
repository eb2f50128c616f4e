# SPDX-License-Identifier: LGPL-2.1-or-later
"""Draws results as SVG."""

import math
import statistics
from xml.sax.saxutils import escape

from .measure import FLOOR, TRACE_AFTER_MS, TRACE_BEFORE_MS
from .report import WAY_NAMES, good_runs, probes_of, size_text, ways_of

WIDTH, LEFT, RIGHT = 960, 64, 16
PANEL, GAP, TOP, BOTTOM = 96, 30, 84, 40
PLOT = WIDTH - LEFT - RIGHT
# Round trips, on a logarithmic scale.
LOWEST_MS, HIGHEST_MS = 0.2, 2000
COLORS = ["#888888", "#c2571a", "#a03080", "#2060b0", "#107040", "#604020"]
STYLE = ("text{font:12px sans-serif;fill:#222}.t{font-size:14px;font-weight:bold}"
         ".s{fill:#666}.g{stroke:#ddd}.a{stroke:#444}")


class Drawing:
    def __init__(self, height):
        self.height = height
        self._parts = []

    def add(self, text):
        self._parts.append(text)

    def text(self, x, y, text, style="", anchor="start"):
        self.add(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
                 + (f' class="{style}"' if style else "") + f">{escape(text)}</text>")

    def line(self, x1, y1, x2, y2, style):
        self.add(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{style}"/>')

    def box(self, x, y, width, height, color, opacity=1.0):
        self.add(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
                 f'fill="{color}" fill-opacity="{opacity}"/>')

    def path(self, data, color, width=1.0):
        if data:
            self.add(f'<path d="{"".join(data)}" stroke="{color}" stroke-width="{width}" '
                     'fill="none"/>')

    def svg(self):
        return "\n".join([
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height:.0f}" '
            f'width="{WIDTH}" height="{self.height:.0f}">',
            f"<style>{STYLE}</style>",
            f'<rect width="{WIDTH}" height="{self.height:.0f}" fill="#fff"/>',
            *self._parts, "</svg>", ""])


def way_name(way):
    return WAY_NAMES.get(way, way).replace("*", "")


def median_run(runs):
    """The run of a way whose worst silence is the median one: what it typically looks like."""
    def silence(run):
        return max(probe["silence_ms"] for probe in run["probes"])
    ordered = sorted((run for run in runs if run.get("trace")), key=silence)
    return ordered[(len(ordered) - 1) // 2] if ordered else None


def replies(scene):
    """Every reply to the pings of one migration, way below way."""
    chosen = []
    for way in ways_of(scene):
        run = median_run(good_runs(scene, way))
        if run:
            chosen.append((way, run))
    height = TOP + len(chosen) * (PANEL + GAP) + BOTTOM
    drawing = Drawing(height)
    drawing.text(LEFT, 20, f"{scene['title']}: {size_text(scene['size'])}", "t")
    drawing.text(LEFT, 38, "Each ping at the time when it was sent, and how long its reply took; "
                 "of each way the run with the median silence.", "s")
    drawing.text(LEFT, 54, "Grey: the guest stands still. Red: lost. Orange: answered twice.", "s")
    first, last = _extent(chosen)

    def x_of(ms):
        return LEFT + (ms - first) / (last - first) * PLOT
    for index, (way, run) in enumerate(chosen):
        _panel(drawing, TOP + index * (PANEL + GAP), way, run, x_of, (first, last))
    bottom = height - BOTTOM
    step = 500 if last - first > 2000 else 250
    for tick in range(int(math.ceil(first / step)) * step, int(last) + 1, step):
        drawing.text(x_of(tick), bottom + 2, f"{tick}", "s", "middle")
    drawing.text(LEFT + PLOT / 2, bottom + 20, "ms since the guest paused", "s", "middle")
    return drawing.svg()


def _extent(chosen):
    """From when to when something is to be seen: the same for all panels."""
    first, last = -500.0, 1000.0
    for _way, run in chosen:
        bad = [offset for offset, back, times in run["trace"] if back is None or times > 1
               or back > 50]
        if bad:
            first = min(first, min(bad) - 200)
            last = max(last, max(bad) + 500)
    return max(first, -TRACE_BEFORE_MS), min(last, TRACE_AFTER_MS)


def _panel(drawing, top, way, run, x_of, extent):
    def y_of(ms):
        ms = min(max(ms, LOWEST_MS), HIGHEST_MS)
        part = math.log(ms / LOWEST_MS) / math.log(HIGHEST_MS / LOWEST_MS)
        return top + PANEL - part * PANEL
    drawing.text(LEFT, top - 5, way_name(way))
    drawing.box(x_of(0), top, x_of(run["pauses_ms"][0]) - x_of(0), PANEL, "#888888", 0.25)
    for ms in (1, 10, 100, 1000):
        drawing.line(LEFT, y_of(ms), LEFT + PLOT, y_of(ms), "g")
        drawing.text(LEFT - 6, y_of(ms) + 4, f"{ms} ms", "s", "end")
    drawing.line(LEFT, top + PANEL, LEFT + PLOT, top + PANEL, "a")
    # A stroke for each half pixel, from the fastest to the slowest in it.
    columns, lost, doubled = {}, set(), set()
    for offset, back, times in run["trace"]:
        if not extent[0] <= offset <= extent[1]:
            continue
        column = round(x_of(offset) * 2) / 2
        if back is None:
            lost.add(column)
        else:
            low, high = columns.get(column, (back, back))
            columns[column] = (min(low, back), max(high, back))
        if times > 1:
            doubled.add(column)
    drawing.path([f"M{x:g} {y_of(low) + 0.5:.1f}V{y_of(high) - 0.5:.1f}"
                  for x, (low, high) in sorted(columns.items())], "#2060b0", 0.8)
    drawing.path([f"M{x:g} {top + PANEL:.1f}v-10" for x in sorted(lost)], "#d02020", 0.8)
    drawing.path([f"M{x:g} {top:.1f}v10" for x in sorted(doubled)], "#e08000", 0.8)


def growth(scenes, axis):
    """What pings saw beside the guest's pause, over one size; None if it was measured once."""
    scenes = [scene for scene in scenes if scene["key"] == "tunnel"]
    # What else may differ stays at its smallest.
    others = {name: min(scene["size"][name] for scene in scenes)
              for name in ("ports", "guests", "nics") if name != axis} if scenes else {}
    scenes = sorted((scene for scene in scenes
                     if all(scene["size"][name] == value for name, value in others.items())),
                    key=lambda scene: scene["size"][axis])
    sizes = sorted({scene["size"][axis] for scene in scenes})
    if len(sizes) < 2:
        return None
    height = 360
    drawing = Drawing(height)
    names = {"ports": "logical ports in the northbound database",
             "guests": "guests that leave a host at once", "nics": "interfaces of the guest"}
    drawing.text(LEFT, 20, "Silence of the pings beyond the guest's pause", "t")
    drawing.text(LEFT, 38, f"Median of the runs, by {names[axis]}", "s")
    bottom, top = height - BOTTOM, TOP + 8

    def x_of(size):
        low, high = math.log(sizes[0]), math.log(sizes[-1])
        return LEFT + 20 + (math.log(size) - low) / (high - low) * (PLOT - 260)

    def y_of(ms):
        part = math.log(max(ms, 0.5) / 0.5) / math.log(20000)
        return bottom - min(part, 1.0) * (bottom - top)
    for ms in (1, 10, 100, 1000, 10000):
        drawing.line(LEFT, y_of(ms), x_of(sizes[-1]), y_of(ms), "g")
        drawing.text(LEFT - 6, y_of(ms) + 4, f"{ms} ms", "s", "end")
    for size in sizes:
        drawing.text(x_of(size), bottom + 18, f"{size:,}", "s", "middle")
    drawing.line(LEFT, bottom, x_of(sizes[-1]), bottom, "a")
    ways = list(dict.fromkeys(way for scene in scenes for way in ways_of(scene)))
    for number, way in enumerate(ways):
        points = []
        for scene in scenes:
            runs = good_runs(scene, way)
            values = [probe["beyond_ms"] for probe in probes_of(runs, "icmp")]
            if values:
                points.append((x_of(scene["size"][axis]), y_of(statistics.median(values))))
        color = "#bbbbbb" if way == FLOOR else COLORS[number % len(COLORS)]
        drawing.path([f"{'L' if index else 'M'}{x:.1f} {y:.1f}"
                      for index, (x, y) in enumerate(points)], color, 2)
        for x, y in points:
            drawing.box(x - 2.5, y - 2.5, 5, 5, color)
        drawing.box(WIDTH - 220, top + number * 20, 12, 12, color)
        drawing.text(WIDTH - 202, top + number * 20 + 11, way_name(way))
    return drawing.svg()
