// A table of interruptions that is updated in place.
import { h, linkTo, setText, sync } from "./dom.js";
import { clock, relative } from "./time.js";

const columns = ["Node", "Kind", "Action", "Phase", "Deadline", "Moved", "Waiting", "Waits for"];

// Rows keeps one element for each interruption.
export class Rows {
  constructor(caption, over) {
    this.over = over;
    this.elements = new Map();
    this.body = h("tbody");
    this.table = h("table", { class: "rows" }, h("caption", { class: "dim" }, caption),
      h("colgroup", {}, ["node", "medium", "short", "medium", over ? "medium" : "short", "short", "short", ""].map((width) => h("col", { class: width }))),
      h("thead", {}, h("tr", {}, columns.map((c) => h("th", { scope: "col" }, over && c === "Deadline" ? "Ended" : over && c === "Waits for" ? "Result" : c)))),
      this.body);
  }

  // show shows the rows in their order. Only the changed ones are drawn again; null: all.
  show(rows, changed) {
    const names = new Set(rows.map((r) => r.name));
    for (const name of this.elements.keys()) if (!names.has(name)) this.elements.delete(name);
    sync(this.body, rows.map((row) => {
      let element = this.elements.get(row.name);
      if (!element) {
        element = this.create(row);
        this.elements.set(row.name, element);
      } else if (!changed || changed.has(row.name)) {
        this.update(element, row);
      }
      return element;
    }));
  }

  create(row) {
    const cells = columns.slice(1).map((c) => h("td", { "data-label": c, class: c === "Moved" || c === "Waiting" ? "number" : "" }));
    cells[3].append(h("span"));
    const element = h("tr", {}, h("th", { scope: "row" }, linkTo(row.name, row.node)), cells);
    this.update(element, row);
    return element;
  }

  update(element, row) {
    const [head, kind, action, phase, deadline, moved, waiting, waitsFor] = element.children;
    setText(head.firstChild, row.node);
    setText(kind, row.kind + (row.drill ? " (drill)" : ""));
    setText(action, row.action);
    setText(phase, row.phase || "new");
    phase.className = row.tone ?? "";
    this.time(deadline.firstChild, row);
    setText(moved, row.pods.total ? `${row.pods.moved}/${row.pods.total}` : "");
    setText(waiting, row.pods.lost ? `${row.pods.lost} lost` : row.pods.waiting || "");
    waiting.classList.toggle("bad", row.pods.lost > 0);
    setText(waitsFor, row.waitsFor);
  }

  time(element, row) {
    element.removeAttribute("class");
    if (this.over) return setText(element, clock(row.ended));
    if (!row.deadline || row.settled) {
      element.removeAttribute("data-at");
      return setText(element, "");
    }
    element.dataset.at = row.deadline;
    element.title = `${clock(row.deadline)}, ${row.deadlineType}`;
    if (row.deadlineType === "Soft") delete element.dataset.hard;
    else element.dataset.hard = "yes";
    setText(element, relative(row.deadline));
  }
}

// matches reports whether a row has all words of a search.
export function matches(row, search) {
  const text = [row.node, row.instance, row.kind, row.action, row.phase, row.policy, row.waitsFor].join(" ").toLowerCase();
  return search.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

export function searchBox(onInput) {
  const input = h("input", { type: "search", id: "search", oninput: () => onInput(input.value) });
  return h("div", { class: "bar", role: "search" }, h("label", { for: "search" }, "Search"), input);
}
