# SPDX-License-Identifier: LGPL-2.1-or-later
"""Turns results into tables, in Markdown, which people can read as well."""

import datetime
import statistics

from .measure import FLOOR

WAY_NAMES = {
    "unpinned": "nothing pinned",
    "rebound": "pinned, rebound afterwards",
    "rarp": "multichassis, rarp, by hand",
    "script": "hook and events in shell",
    "portferry": "**portferry**",
    "portferry-pinned": "**portferry**, port pinned",
    FLOOR: "*floor: suspend, resume*",
}
PROBE_NAMES = {
    "icmp": "ICMP echo", "udp": "UDP echo", "stream": "UDP from the guest",
    "sink": "UDP to the guest", "tcp": "TCP to the guest",
}
DAEMON_NAMES = {
    "preplug_ms": "pre-plug committed",
    "binding_ms": "pre-plugged → network ready",
    "gate_added_ms": "what the gate adds once the network is ready",
    "pause_seen_ms": "guest's pause → source's daemon knows",
    "seen_to_open_ms": "source's daemon knows → destination sees itself open",
    "resume_seen_ms": "guest's resume → destination's daemon knows",
    "resume_to_active_ms": "guest's resume → the destination alone is bound",
}


def percentile(values, part):
    """The value that so much of all lie at or below (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, -(-int(part * len(ordered) * 1000) // 1000) - 1)]


def spread(values, form="{:.1f}"):
    """Median / 95th percentile / worst."""
    values = [value for value in values if value is not None]
    if not values:
        return "–"
    return " / ".join(form.format(one) for one in (
        statistics.median(values), percentile(values, 0.95), max(values)))


def table(header, rows):
    """A Markdown table that is aligned, so that it can be read as it is."""
    widths = [max(len(str(row[column])) for row in [header, *rows])
              for column in range(len(header))]

    def line(cells):
        return "| " + " | ".join(str(cell).ljust(width)
                                 for cell, width in zip(cells, widths)) + " |"
    return "\n".join([line(header), "|" + "|".join("-" * (width + 2) for width in widths) + "|",
                      *[line(row) for row in rows]])


def ways_of(scene):
    """The ways in the order in which they were measured, the floor last."""
    keys = list(dict.fromkeys(run["way"] for run in scene["runs"]))
    return [key for key in keys if key != FLOOR] + [key for key in keys if key == FLOOR]


def size_text(size):
    words = [f"{size['ports']:,} ports"]
    words.append("1 guest" if size["guests"] == 1 else f"{size['guests']} guests at once")
    words.append("1 interface" if size["nics"] == 1 else f"{size['nics']} interfaces")
    return ", ".join(words)


def probes_of(runs, kind):
    return [probe for run in runs for probe in run["probes"] if probe["kind"] == kind]


def good_runs(scene, way=None):
    """Those in which the guest was migrated."""
    return [run for run in scene["runs"]
            if "failed" not in run and way in (None, run["way"])]


def count_text(scene, way):
    failed = sum("failed" in run for run in scene["runs"] if run["way"] == way)
    return f"{len(good_runs(scene, way))}" + (f", {failed} failed" if failed else "")


def scene_tables(scene):
    """The tables of one scene: what probes saw, and the daemon's own times."""
    kinds = list(dict.fromkeys(probe["kind"] for run in good_runs(scene)
                               for probe in run["probes"]))
    text = [f"### {scene['title'][0].upper()}{scene['title'][1:]}: {size_text(scene['size'])}", ""]
    for kind in kinds:
        rows = []
        for way in ways_of(scene):
            runs = good_runs(scene, way)
            probes = probes_of(runs, kind)
            rows.append([
                WAY_NAMES.get(way, way), count_text(scene, way),
                spread([value for run in runs for value in run["pauses_ms"]], "{:.0f}"),
                spread([probe["switch_ms"] for probe in probes]),
                spread([probe["elsewhere_ms"] for probe in probes]),
                *([spread([probe["refused"] for probe in probes], "{:.0f}")] if kind == "tcp" else
                  [spread([probe["lost"] for probe in probes], "{:.0f}"),
                   spread([probe["doubled"] for probe in probes], "{:.0f}")]),
                ", ".join(sorted({run["bound"] for run in runs} - {""}))])
        rate = max(probe["rate"] for probe in probes_of(good_runs(scene), kind))
        unit = f"{rate:,} bytes a second" if kind == "tcp" else f"{rate:,} a second"
        text += [f"{PROBE_NAMES[kind]}, {unit}:", "", table(
            ["way", "runs", "guest's pause ms", "silence beyond it ms",
             "silence elsewhere ms",
             *(["segments sent again"] if kind == "tcp" else ["lost", "doubled"]),
             "bound at the end"], rows), ""]
    return "\n".join(text)


def daemon_table(scenes):
    """The daemons' own times, a column for each scene."""
    rows = []
    measured = [scene for scene in scenes
                if any(run.get("daemon") for run in scene["runs"])]
    if not measured:
        return ""

    def numbers(scene, key):
        return [one.get(key) for run in scene["runs"] for one in run.get("daemon", [])]

    def hooks(scene, name, way):
        return [hook["ms"] for run in good_runs(scene, way)
                for hook in run["hooks"] if hook["hook"] == name]
    for key, name in DAEMON_NAMES.items():
        rows.append([name, *[spread(numbers(scene, key)) for scene in measured]])
    for hook in ("migrate begin", "started begin"):
        rows.append([f"hook `{hook}`, all of it",
                     *[spread(hooks(scene, hook, "portferry")) for scene in measured]])
        rows.append(["... of the hook in shell",
                     *[spread(hooks(scene, hook, "script")) for scene in measured]])
    costs = [scene.get("costs", {}) for scene in measured]
    for name, key in (("memory (RSS) of a daemon, KiB", "rss_kib"),
                      ("... its own, without libraries", "anonymous_kib")):
        rows.append([name, *[spread([one.get(key) for one in cost.get("daemons", [])], "{:.0f}")
                             for cost in costs]])
    for name, database in (("northbound", "nb"), ("southbound", "sb")):
        rows.append([f"read from the {name} database, KiB, all runs",
                     *[spread([one["read_bytes"][database] / 1024
                               for one in cost.get("daemons", [])
                               if database in one["read_bytes"]], "{:.0f}") for cost in costs]])
    rows.append(["wakeups a second, idle",
                 *[spread([one["idle_wakeups"] / one["idle_s"]
                           for one in cost.get("daemons", [])], "{:.2f}") for cost in costs]])
    rows.append(["CPU, idle, % of one",
                 *[spread([one["idle_cpu_ticks"] / one["idle_s"]
                           for one in cost.get("daemons", [])], "{:.2f}") for cost in costs]])
    rows.append(["northd: a change's way to the southbound database, ms",
                 *[f"{cost['northd']['sync_ms']:.0f}" if "northd" in cost else "–"
                   for cost in costs]])
    rows.append(["northd: its own loop, median / 95 % / worst, ms",
                 *[_stopwatch(cost, "ovn-northd-loop") for cost in costs]])
    header = ["median / 95 % / worst, ms", *[f"{scene['key']}, {size_text(scene['size'])}"
                                             for scene in measured]]
    # Many columns are unreadable: a scene becomes a row instead.
    return "\n\n".join(table(["", header[column]], [[row[0], row[column]] for row in rows])
                       for column in range(1, len(header)))


def _stopwatch(cost, name):
    times = cost.get("northd", {}).get("stopwatches", {}).get(name)
    if not times:
        return "–"
    return " / ".join(f"{times.get(key, 0):.0f}" for key in (
        "50th percentile", "95th percentile", "Maximum"))


def growth_table(scenes):
    """How portferry's cost grows, over the sizes of one path."""
    rows = []
    for scene in scenes:
        runs = good_runs(scene, "portferry")
        if scene["key"] != "tunnel" or not runs:
            continue
        icmp = probes_of(runs, "icmp")
        daemons = scene.get("costs", {}).get("daemons", [])
        rows.append([
            size_text(scene["size"]), count_text(scene, "portferry"),
            spread([value for run in runs for value in run["pauses_ms"]], "{:.0f}"),
            spread([probe["switch_ms"] for probe in icmp]),
            spread([probe["lost"] for probe in icmp], "{:.0f}"),
            spread([hook["ms"] for run in runs for hook in run["hooks"]
                    if hook["hook"] == "migrate begin"]),
            spread([one["rss_kib"] for one in daemons], "{:.0f}"),
            f"{scene['costs']['northd']['sync_ms']:.0f}" if "northd" in scene.get("costs", {})
            else "–"])
    if not rows:
        return ""
    return table(["size", "runs", "guest's pause ms", "silence beyond it ms", "lost, ICMP",
                  "hook `migrate begin` ms", "RSS KiB", "northd ms"], rows)


def writes_table(scenes):
    """What each way writes to the databases, OVN's own writes included."""
    rows = []
    for scene in scenes:
        for way in ways_of(scene):
            counts = [run["writes"] for run in good_runs(scene, way) if run.get("writes")]
            if counts:
                rows.append([f"{scene['key']}, {size_text(scene['size'])}", WAY_NAMES[way],
                             *[spread([one[name][index] for one in counts if one[name]], "{:.0f}")
                               for name in ("nb", "sb") for index in (0, 1)]])
    return rows and table(["", "way", "northbound transactions", "bytes",
                           "southbound transactions", "bytes"], rows)


def server_table(measured):
    """What portferryd's conditions cost a database server."""
    rows = []
    for one in measured:
        counts = sorted((int(number), cost) for number, cost in one["update_us"].items())
        (few, low), (many, high) = counts[0], counts[-1]
        rows.append([
            f"{one['ports']:,}", f"{one['connect_few_ms']:.0f}", f"{one['connect_few_kib']:.1f}",
            f"{one['connect_all_ms']:.0f}", f"{one['connect_all_kib']:,.0f}",
            f"{low:.0f}", f"{(high - low) / (many - few):.2f}",
            f"{one['rss_kib'] / 1024:.0f}"])
    return table(["ports", "a portferryd connects, CPU ms", "KiB to it",
                  "a full replica connects, CPU ms", "KiB to it", "one change, CPU us",
                  "more for each portferryd, CPU us", "server's memory MiB"],
                 rows)


def how_taken(results):
    machine = results["machine"]
    when = datetime.datetime.fromtimestamp(results["began"], datetime.timezone.utc)
    busy = ""
    if machine["load"] > machine["cpus"] / 2:
        busy = (f" **The machine was busy with other things (load {machine['load']:.1f}): "
                "these are no measurements, they show the form.**")
    return (f"Taken {when:%Y-%m-%d %H:%M} UTC, {results['repeat']} times each way, in turn, on "
            f"{machine['cpus']} CPUs ({machine['cpu']}), Linux {machine['kernel']}, "
            f"{machine['versions']}.{busy} Every cell is median / 95th percentile / worst.")


def markdown(results):
    """All tables of a run."""
    scenes = results["scenes"]
    text = [how_taken(results), ""]
    text += [scene_tables(scene) for scene in scenes]
    growth = growth_table(scenes)
    if growth:
        text += ["### How it grows: portferry on the tunnel path", "", growth, ""]
    daemon = daemon_table(scenes)
    if daemon:
        text += ["### The daemons' own times and costs", "", daemon, ""]
    writes = writes_table(scenes)
    if writes:
        text += ["### What is written to the databases, OVN's own writes included", "", writes, ""]
    if results.get("server"):
        text += ["### What it costs a northbound server", "", server_table(results["server"]), ""]
    return "\n".join(text)
