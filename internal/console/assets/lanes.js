// A time line with one lane for the node, its replacement, each hook and each pod.
import { h, setText, svg, sync } from "./dom.js";
import { now, offset } from "./time.js";

const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400, 604800].map((s) => s * 1000);

const legend = () => h("ul", { class: "legend", "aria-hidden": "true" },
  [["waits", "not asked to leave"], ["leaves", "leaves"], ["grace", "rest of its grace"], ["boots", "replacement starts"], ["ready", "ready, or node empty"]]
    .map(([is, text]) => h("li", {}, h("i", { class: is }), text)),
  [["asked", "asked to leave, gone"], ["lastcall", "last call"], ["deadline", "deadline"]].map(([is, text]) => h("li", {}, h("b", { class: is }), text)));

// Lanes draws lanes on one axis.
export class Lanes {
  constructor(caption) {
    this.axis = h("div", { class: "axis", "aria-hidden": "true" });
    this.body = h("tbody");
    this.rows = new Map();
    this.element = h("div", {}, legend(), h("table", { class: "lanes" }, h("caption", { class: "dim" }, caption),
      h("thead", {}, h("tr", {}, h("th", { scope: "col", class: "name" }, "What"), h("th", { scope: "col", class: "note" }, "State and reason"),
        h("th", { scope: "col", class: "axiscell" }, h("span", { class: "dim" }, "Time since the notice"), this.axis))),
      this.body));
  }

  show(d, live) {
    const end = live ? Math.max(d.to, now()) : d.to;
    const at = (millis) => Math.min(100, Math.max(0, (100 * (millis - d.from)) / (end - d.from)));
    this.drawAxis(d, end, at);
    const labels = new Set(d.lanes.map((l) => l.of + l.label));
    for (const label of this.rows.keys()) if (!labels.has(label)) this.rows.delete(label);
    sync(this.body, d.lanes.map((lane) => {
      let row = this.rows.get(lane.of + lane.label);
      if (!row) {
        row = h("tr", {}, h("th", { scope: "row", class: "name" }), h("td", { class: "note" }, h("b"), " ", h("span")), h("td", {}, h("div", { class: "track", role: "img" })));
        this.rows.set(lane.of + lane.label, row);
      }
      const [name, note, track] = row.children;
      setText(name, lane.label);
      setText(note.firstChild, lane.state);
      note.firstChild.className = lane.tone ?? "";
      setText(note.lastChild, lane.reason);
      this.drawTrack(track.firstChild, lane, d, end, at, live);
      return row;
    }));
  }

  drawAxis(d, end, at) {
    const step = steps.find((s) => (end - d.from) / s <= 6) ?? steps.at(-1);
    const labels = [];
    for (let t = 0; d.from + t <= end - step / 3; t += step) {
      const label = h("span", {}, offset(t));
      label.style.left = at(d.from + t) + "%";
      labels.push(label);
    }
    sync(this.axis, labels);
  }

  drawTrack(track, lane, d, end, at, live) {
    track.setAttribute("aria-label", lane.text);
    track.title = lane.text;
    const parts = (lane.segments ?? []).map((s) => {
      const to = s.to || (live ? now() : end);
      const part = h("i", { class: s.is });
      part.style.left = at(s.from) + "%";
      part.style.width = Math.max(0, at(to) - at(s.from)) + "%";
      return part;
    });
    const marks = [...(lane.marks ?? [])];
    if (d.deadlineOnAxis) marks.push({ is: "deadline", at: d.deadline });
    if (live) marks.push({ is: "current", at: now() });
    for (const m of marks) {
      const mark = h("b", { class: m.is });
      mark.style.left = at(m.at) + "%";
      parts.push(mark);
    }
    sync(track, parts);
  }
}

// countsChart draws how many pods are on the node over time.
export function countsChart(d, live) {
  const end = live ? Math.max(d.to, now()) : d.to;
  const latest = live ? now() : end;
  const most = Math.max(1, ...d.counts.map((c) => c.serving + c.leaving));
  const x = (millis) => (1000 * (millis - d.from)) / (end - d.from);
  const area = (count) => {
    let path = "M0 100";
    d.counts.forEach((c, i) => {
      const y = 100 - (100 * count(c)) / most;
      path += `L${x(c.at)} ${y}L${x(d.counts[i + 1]?.at ?? latest)} ${y}`;
    });
    return path + `L${x(latest)} 100Z`;
  };
  const last = d.counts.at(-1);
  const text = `Pods on the node: ${d.counts[0].serving + d.counts[0].leaving} at the notice, ${last.serving + last.leaving} ${live ? "now" : "at the end"}. At most ${most}.`;
  return h("figure", {}, h("figcaption", {}, text),
    svg("svg", { class: "chart", viewBox: "0 0 1000 100", preserveAspectRatio: "none", role: "img", "aria-label": text },
      svg("path", { class: "leaving", d: area((c) => c.serving + c.leaving) }), svg("path", { class: "serving", d: area((c) => c.serving) })));
}
