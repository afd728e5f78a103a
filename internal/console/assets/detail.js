// The page of one interruption.
import { command, facts, h, scroll, setText, sync } from "./dom.js";
import { countsChart, Lanes } from "./lanes.js";
import { fetchJSON, state } from "./store.js";
import { clock, offset, relative } from "./time.js";

export class DetailPage {
  constructor(name) {
    this.name = name;
    this.title = name;
    this.heading = h("h1", {}, name);
    this.head = h("div", {}, h("p", {}, "Reading the interruption…"));
    this.lanes = new Lanes("Pods that were asked to leave come first");
    this.lanes.element.hidden = true;
    this.more = h("p", { class: "dim" });
    this.chart = h("div");
    this.rest = h("div");
    this.element = h("div", {}, h("p", {}, h("a", { href: "#/" }, "All interruptions")), this.heading, this.head,
      h("h2", {}, "Time line"), this.lanes.element, this.more, this.chart, this.rest);
  }

  async update(changed, all) {
    if (!all && !changed.has(this.name)) return;
    if (this.busy) {
      this.again = true;
      return;
    }
    this.busy = true;
    do {
      this.again = false;
      try {
        this.show(await fetchJSON("api/interruptions/" + encodeURIComponent(this.name)));
      } catch (error) {
        if (state.connected && state.cluster.listed) sync(this.head, [h("p", { class: "bad" }, error.message)]);
      }
    } while (this.again);
    this.busy = false;
  }

  // tick moves the end of a time line that goes on.
  tick() {
    if (this.detail && !this.detail.over) this.draw();
  }

  draw() {
    const d = this.detail;
    this.lanes.show(d, !d.over);
    sync(this.chart, d.counts?.length ? [h("h2", {}, "Pods on the node"), countsChart(d, !d.over)] : []);
  }

  show(d) {
    this.detail = d;
    this.title = d.node;
    setText(this.heading, `${d.node}: ${d.kind}${d.drill ? " (drill)" : ""}`);
    const deadline = d.deadline
      ? [h("dt", {}, "deadline"), h("dd", {}, d.over ? clock(d.deadline) : h("span", { "data-at": d.deadline, "data-hard": d.deadlineType !== "Soft" }, relative(d.deadline)), d.over ? ", " : ` (${clock(d.deadline)}), `, d.facts.find((f) => f.label === "deadline")?.text)] : [];
    const list = facts([
      { label: "phase", text: `${d.phase || "new"}${d.action ? ", action " + d.action : ""}`, tone: d.tone },
      { label: "decision", text: d.decision },
      { label: "pods", text: `${d.pods.moved} of ${d.pods.total} moved, ${d.pods.leaving} leaving, ${d.pods.waiting} waiting, ${d.pods.lost} lost`, tone: d.pods.lost ? "bad" : "" },
      { label: "instance", text: d.instance },
      ...d.facts.filter((f) => f.label !== "deadline"),
    ].filter((f) => f.text));
    list.append(...deadline);
    sync(this.head, [
      list,
      ...d.needs.map((n) => h("ul", { class: "needs" }, h("li", {}, n.why, command(n.command)))),
      h("p", { class: "dim" }, "The same in a terminal: ", h("code", {}, `${state.cluster.program} explain ${d.node}`)),
    ]);
    this.lanes.element.hidden = false;
    setText(this.more, [
      d.morePods ? `${d.morePods} more pods left; the record does not have their times.` : "",
      d.deadline && !d.deadlineOnAxis ? `The deadline (${clock(d.deadline)}) is too far away for this axis.` : "",
    ].join(" ").trim());
    this.draw();
    sync(this.rest, [h("h2", {}, "What happened"), this.entries(d), h("h2", {}, "Notices"), this.notices(d)]);
  }

  entries(d) {
    return scroll("What happened", h("table", {}, h("thead", {}, h("tr", {}, ["Time", "Reason", "Message"].map((c) => h("th", { scope: "col" }, c)))),
      h("tbody", {}, d.entries.map((e) => h("tr", {}, h("td", { class: "number", title: clock(e.at) }, offset(e.at - d.from)), h("td", { class: e.tone }, e.reason), h("td", {}, e.text))))));
  }

  notices(d) {
    return scroll("Notices", h("table", {}, h("thead", {}, h("tr", {}, ["Received", "Kind", "Source", "What it says"].map((c) => h("th", { scope: "col" }, c)))),
      h("tbody", {}, d.notices.map((n) => h("tr", {}, h("td", {}, clock(n.received)), h("td", {}, n.kind + (n.state ? ` (${n.state})` : "")), h("td", {}, n.source), h("td", {}, n.text))))));
  }
}
