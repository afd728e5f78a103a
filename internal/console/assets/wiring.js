// The page about the health of the installation, sources, node groups and policies.
import { command, h, linkTo, sync } from "./dom.js";
import { state } from "./store.js";
import { clock } from "./time.js";

const words = { broken: "bad", warning: "warn", unknown: "warn" };

function finding(severity, object, problem, fix) {
  return h("li", {}, h("b", { class: words[severity] }, severity), ` ${object ? object + ": " : ""}${problem}`, fix ? h("p", { class: "command" }, "To do: ", h("code", {}, fix)) : "");
}

function list(title, all, empty, row) {
  return [h("h2", {}, title), all.length ? h("ul", { class: "needs" }, all.map(row)) : h("p", {}, empty)];
}

export class WiringPage {
  title = "Wiring";
  element = h("div");

  update() {
    if (this.health === state.health && this.wiring === state.wiring && this.cluster === state.cluster) return;
    [this.health, this.wiring, this.cluster] = [state.health, state.wiring, state.cluster];
    sync(this.element, [h("h1", {}, "Wiring"), ...this.healthParts(), ...(this.wiring ? this.wiringParts(this.wiring) : [])]);
  }

  healthParts() {
    const health = this.health;
    if (!health?.checked) return [h("h2", {}, "Installation"), h("p", {}, "Checking…")];
    return [
      h("h2", {}, "Installation"), h("p", {}, health.text),
      health.problems.length ? h("ul", { class: "needs" }, health.problems.map((p) => finding(p.severity, p.object, p.problem, p.fix))) : h("p", { class: "good" }, "No problem was found."),
      h("p", { class: "dim" }, `Checked at ${clock(health.checked)}. The AWS resources are not checked here. To check them too:`),
      command(`${state.cluster.program} doctor --probe`),
    ];
  }

  wiringParts(w) {
    return [
      ...list("Notices that the queue did not deliver", w.degraded, "In the last 7 days the queue delivered every notice that another source reported.",
        (d) => h("li", {}, linkTo(d.name, d.node), ` ${d.text} (${clock(d.since)})`)),
      ...list("Node groups", w.groups, "The cluster has no NodeGroup.",
        (g) => h("li", {}, h("b", { class: g.tone }, g.name), ` ${g.text} ${g.instances}.`, g.findings.length ? h("ul", {}, g.findings.map((f) => finding(f.severity, "", f.message, f.fix))) : "")),
      ...list("Policies", w.policies, "The cluster has no InterruptionPolicy: the built-in defaults apply.",
        (p) => h("li", {}, h("b", { class: p.tone }, p.name), ` ${p.text}`)),
    ];
  }
}
