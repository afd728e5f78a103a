// The pages Now and History.
import { command, h, linkTo, setText, sync } from "./dom.js";
import { matches, Rows, searchBox } from "./rows.js";
import { state } from "./store.js";
import { duration, now, relative } from "./time.js";

const needsLimit = 20;
const historyStep = 200;

function tile(label) {
  const value = h("b");
  return { value, element: h("li", {}, value, h("span", {}, label)) };
}

// byDeadline sorts what moves pods first, then by deadline.
const byDeadline = (a, b) =>
  (a.settled ? 1 : 0) - (b.settled ? 1 : 0) || (a.deadline || Infinity) - (b.deadline || Infinity) || a.node.localeCompare(b.node);

function need(n) {
  const since = n.since ? ` (for ${duration(now() - Date.parse(n.since))})` : "";
  return h("li", {}, n.interruption ? linkTo(n.interruption, n.node) : n.node, ` ${n.why}${since}`, command(n.command));
}

export class NowPage {
  title = "Now";

  constructor() {
    this.search = "";
    this.tiles = ["interruptions under way", "nearest deadline", "pods to evict", "pods leaving", "pods lost", "wait for a person"].map(tile);
    this.needs = h("section", { "aria-labelledby": "needs" });
    this.rows = new Rows("Interruptions under way, by deadline", false);
    this.none = h("p");
    this.element = h("div", {}, h("h1", {}, "Now"),
      h("ul", { class: "tiles" }, this.tiles.map((t) => t.element)), this.needs,
      h("h2", {}, "Under way"), searchBox((text) => { this.search = text; this.update(new Set(), true); }), this.none,
      h("div", { class: "scroll" }, this.rows.table));
  }

  update(changed, all) {
    const s = state.summary;
    if (s) {
      const [count, deadline, waiting, leaving, lost, person] = this.tiles.map((t) => t.value);
      setText(count, s.interruptions);
      if (s.nearest) deadline.dataset.at = s.nearest;
      else delete deadline.dataset.at;
      setText(deadline, s.nearest ? relative(s.nearest) : "none");
      setText(waiting, s.podsWaiting);
      setText(leaving, s.podsLeaving);
      setText(lost, s.podsLost);
      lost.className = s.podsLost ? "bad" : "";
      setText(person, state.needs.length);
      person.className = state.needs.length ? "warn" : "";
    }
    this.showNeeds();
    const open = [...state.rows.values()].filter((r) => !r.over);
    const shown = open.filter((r) => matches(r, this.search)).sort(byDeadline);
    this.rows.show(shown, all ? null : changed);
    this.rows.table.hidden = shown.length === 0;
    setText(this.none, !state.cluster.listed ? "Reading the interruptions…"
      : open.length === 0 ? "No interruption is under way." : shown.length === 0 ? "No interruption matches the search." : "");
  }

  showNeeds() {
    if (this.shownNeeds === state.needs) return;
    this.shownNeeds = state.needs;
    const more = state.needs.length - needsLimit;
    sync(this.needs, [
      h("h2", { id: "needs" }, "Waits for a person"),
      state.needs.length ? h("ul", { class: "needs" }, state.needs.slice(0, needsLimit).map(need)) : h("p", {}, "Nothing waits for a person."),
      ...(more > 0 ? [h("p", {}, `And ${more} more. To list all:`), command(state.cluster.program + " status")] : []),
    ]);
  }
}

export class HistoryPage {
  title = "History";

  constructor() {
    this.search = "";
    this.limit = historyStep;
    this.rows = new Rows("Interruptions that are over, the latest first", true);
    this.none = h("p");
    this.more = h("button", { type: "button", onclick: () => { this.limit += historyStep; this.update(new Set(), true); } });
    this.element = h("div", {}, h("h1", {}, "History"),
      h("p", { class: "dim" }, "Interruptions stay here for as long as the cluster keeps them."),
      searchBox((text) => { this.search = text; this.limit = historyStep; this.update(new Set(), true); }), this.none,
      h("div", { class: "scroll" }, this.rows.table), this.more);
  }

  update(changed, all) {
    const over = [...state.rows.values()].filter((r) => r.over);
    const found = over.filter((r) => matches(r, this.search)).sort((a, b) => b.ended - a.ended || a.node.localeCompare(b.node));
    this.rows.show(found.slice(0, this.limit), all ? null : changed);
    this.rows.table.hidden = found.length === 0;
    const rest = found.length - this.limit;
    this.more.hidden = rest <= 0;
    setText(this.more, `Show more (${rest} left)`);
    setText(this.none, over.length === 0 ? "No interruption is over yet." : found.length === 0 ? "No interruption matches the search." : "");
  }
}
