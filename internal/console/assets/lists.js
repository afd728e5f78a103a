// The pages Now and History.
import { command, h, linkTo, scroll, setText, sync } from "./dom.js";
import { matches, Rows, searchBox } from "./rows.js";
import { state } from "./store.js";
import { duration, now, relative } from "./time.js";

const needsLimit = 20;
// step is how many rows are drawn at first, and with each press of "Show more".
const step = 200;

function tile(label) {
  const value = h("b");
  return { value, element: h("li", {}, value, h("span", {}, label)) };
}

const byName = (a, b) => (a.node < b.node ? -1 : a.node > b.node ? 1 : 0);

// byDeadline sorts what moves pods first, then by deadline.
const byDeadline = (a, b) =>
  (a.settled ? 1 : 0) - (b.settled ? 1 : 0) || (a.deadline || Infinity) - (b.deadline || Infinity) || byName(a, b);

function need(n) {
  const since = n.since ? ` (for ${duration(now() - Date.parse(n.since))})` : "";
  return h("li", {}, n.interruption ? linkTo(n.interruption, n.node) : n.node, ` ${n.why}${since}`, command(n.command));
}

// List is a table with a search, of which only the first rows are drawn.
class List {
  constructor(caption, over) {
    this.search = "";
    this.limit = step;
    this.rows = new Rows(caption, over);
    this.none = h("p");
    this.more = h("button", { type: "button", onclick: () => this.change({ limit: this.limit + step }) });
    this.box = searchBox((text) => this.change({ search: text, limit: step }));
    this.element = h("div", {}, this.box, this.none, scroll("Interruptions", this.rows.table), this.more);
  }

  change(how) {
    Object.assign(this, how);
    this.show(this.all, this.empty, null);
  }

  // show shows those of all that match. Only changed ones are drawn again; null: all.
  show(all, empty, changed) {
    [this.all, this.empty] = [all, empty];
    const found = all.filter((r) => matches(r, this.search));
    this.rows.show(found.slice(0, this.limit), changed);
    this.rows.table.hidden = found.length === 0;
    this.more.hidden = found.length <= this.limit;
    setText(this.more, `Show more (${found.length - this.limit} left)`);
    setText(this.none, all.length === 0 ? empty : found.length === 0 ? "No interruption matches the search." : "");
  }
}

export class NowPage {
  title = "Now";

  constructor() {
    this.tiles = ["interruptions under way", "nearest deadline", "pods to evict", "pods leaving", "pods lost", "wait for a person"].map(tile);
    this.needs = h("section", { "aria-labelledby": "needs" });
    this.list = new List("Interruptions under way, by deadline", false);
    this.element = h("div", {}, h("h1", {}, "Now"),
      h("ul", { class: "tiles" }, this.tiles.map((t) => t.element)), this.needs,
      h("h2", {}, "Under way"), this.list.element);
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
    const open = [...state.rows.values()].filter((r) => !r.over).sort(byDeadline);
    this.list.show(open, state.cluster.listed ? "No interruption is under way." : "Reading the interruptions…", all ? null : changed);
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
    this.list = new List("Interruptions that are over, the latest first", true);
    this.element = h("div", {}, h("h1", {}, "History"),
      h("p", { class: "dim" }, "Interruptions stay here for as long as the cluster keeps them."), this.list.element);
  }

  update(changed, all) {
    const over = [...state.rows.values()].filter((r) => r.over).sort((a, b) => b.ended - a.ended || byName(a, b));
    this.list.show(over, "No interruption is over yet.", all ? null : changed);
  }
}
