// The page that predicts what an interruption would do to the pods of a node.
import { command, facts, h, sync } from "./dom.js";
import { Lanes } from "./lanes.js";
import { fetchJSON } from "./store.js";
import { clock } from "./time.js";

const kinds = [["", "the current interruption, or spot"], ["spot", "spot"], ["rebalance", "rebalance"], ["scheduled", "scheduled"], ["autoscaling", "Auto Scaling termination"], ["status", "failed status check"]];

export class PlanPage {
  title = "Plan";

  constructor(node) {
    this.node = h("input", { id: "node", list: "nodes", required: true, autocomplete: "off", size: 34, value: node });
    this.names = h("datalist", { id: "nodes" });
    this.kind = h("select", { id: "kind" }, kinds.map(([value, text]) => h("option", { value: value || undefined }, text)));
    this.kind.options[0].value = "";
    this.lanes = new Lanes("Prediction for each pod");
    this.result = h("div", { "aria-live": "polite" });
    const form = h("form", { class: "bar", onsubmit: (event) => { event.preventDefault(); this.run(); } },
      h("label", { for: "node" }, "Node"), this.node, this.names, h("label", { for: "kind" }, "Notice"), this.kind, h("button", { type: "submit" }, "Show the plan"));
    this.element = h("div", {}, h("h1", {}, "Plan"),
      h("p", {}, "What would happen to each pod if the node were interrupted now. It is a prediction, and nothing is changed."), form, this.result);
    this.load();
    if (node) this.run();
  }

  async load() {
    try {
      sync(this.names, (await fetchJSON("api/nodes")).map((name) => h("option", { value: name })));
    } catch (error) {
      sync(this.result, [h("p", { class: "bad" }, error.message)]);
    }
  }

  async run() {
    this.abort?.abort();
    this.abort = new AbortController();
    const query = new URLSearchParams({ node: this.node.value.trim(), kind: this.kind.value });
    sync(this.result, [h("p", {}, "Planning…")]);
    try {
      this.show(await fetchJSON("api/plan?" + query, this.abort.signal));
    } catch (error) {
      if (error.name !== "AbortError") sync(this.result, [h("p", { class: "bad" }, error.message)]);
    }
  }

  show(p) {
    const deadline = p.deadline ? [{ label: "deadline", text: `${clock(p.deadline)}, ${p.deadlineType}` }] : [];
    this.lanes.show(p, false);
    sync(this.result, [
      h("h2", {}, p.title), h("p", { class: p.tone }, p.verdict),
      ...(p.fixes.length ? [h("ul", { class: "needs" }, p.fixes.map((f) => h("li", {}, f)))] : []),
      facts([...p.facts, ...deadline]),
      p.lanes.length ? this.lanes.element : h("p", {}, "No pods run on this node."),
      h("p", { class: "dim" }, "The same in a terminal:"), command(p.command),
    ]);
  }

  update() {}
}
