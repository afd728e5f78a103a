// Chooses the page by the address, and handles keys.
import { setText } from "./dom.js";
import { DetailPage } from "./detail.js";
import { HistoryPage, NowPage } from "./lists.js";
import { PlanPage } from "./plan.js";
import { connect, onChange, state } from "./store.js";
import { clock, tick } from "./time.js";
import { WiringPage } from "./wiring.js";

const main = document.getElementById("main");
let page;

function route() {
  const [path, query] = location.hash.split("?");
  if (path && !path.startsWith("#/")) return; // the link to the content
  const parts = path.slice(2).split("/");
  const name = parts[0] || "now";
  switch (name) {
    case "i": page = new DetailPage(decodeURIComponent(parts[1] ?? "")); break;
    case "history": page = new HistoryPage(); break;
    case "wiring": page = new WiringPage(); break;
    case "plan": page = new PlanPage(new URLSearchParams(query).get("node") ?? ""); break;
    default: page = new NowPage();
  }
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.page === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  main.replaceChildren(page.element);
  draw(new Set(), true);
  window.scrollTo(0, 0);
  main.focus({ preventScroll: true });
}

function draw(changed, all) {
  page.update(changed, all);
  document.title = `${page.title} · Lifeboat ${state.cluster.name}`;
  setText(document.getElementById("cluster"), state.cluster.name);
  const problems = state.cluster.failures.map((f) => `The cluster does not answer as expected: ${f}. The console tries again.`);
  if (!state.connected && state.lastUpdate) problems.unshift(`The console's server does not answer. The page shows the state of ${clock(state.lastUpdate)}. Start \`${state.cluster.program} console\` again.`);
  setText(document.getElementById("connection"), problems.join(" "));
}

const themes = ["system", "light", "dark"];
const themeButton = document.getElementById("theme");

function setTheme(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  setText(themeButton, "Theme: " + theme);
  localStorage.setItem("theme", theme);
}

themeButton.addEventListener("click", () => setTheme(themes[(themes.indexOf(localStorage.getItem("theme")) + 1) % themes.length]));
setTheme(themes.includes(localStorage.getItem("theme")) ? localStorage.getItem("theme") : "system");

// move focuses the next or previous link of a table.
function move(by) {
  const links = [...main.querySelectorAll("tbody a")];
  const at = links.indexOf(document.activeElement);
  links[Math.min(links.length - 1, Math.max(0, at < 0 ? 0 : at + by))]?.focus();
}

document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("input, select, textarea");
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") {
    if (typing) event.target.blur();
    else if (location.hash.startsWith("#/i/")) location.hash = "#/";
  } else if (!typing && event.key === "/") {
    const search = document.getElementById("search");
    if (search) {
      event.preventDefault();
      search.focus();
    }
  } else if (!typing && (event.key === "j" || event.key === "k")) {
    move(event.key === "j" ? 1 : -1);
  }
});

window.addEventListener("hashchange", route);
onChange(draw);
route();
connect();
setInterval(() => {
  tick();
  page.tick?.();
}, 1000);
