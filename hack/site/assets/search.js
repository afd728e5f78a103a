// Search and the menu of small screens. The index is loaded when the field gets the focus.
(() => {
  "use strict";
  const shown = 12;
  const field = document.getElementById("search");
  const results = document.getElementById("results");
  const found = document.getElementById("found");
  const menu = document.getElementById("menu");
  // The site can be below any path, or on a disk: the link to the first page says where it is.
  const top = new URL(".", document.querySelector("a.home").href);
  let loading;

  const load = () => loading ??= new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = new URL("search-index.js", top);
    script.onload = () => {
      const index = new MiniSearch({
        fields: ["title", "page", "text"],
        storeFields: ["title", "page", "url", "anchor", "text"],
        searchOptions: { boost: { title: 4, page: 2 }, prefix: true, fuzzy: 0.15, combineWith: "AND" },
      });
      index.addAll(window.searchIndex.map((section, id) => ({ id, ...section })));
      done(index);
    };
    script.onerror = () => failed(new Error("The search index cannot be loaded."));
    document.head.append(script);
  });

  const element = (tag, properties, ...children) => {
    const e = Object.assign(document.createElement(tag), properties);
    e.append(...children);
    return e;
  };

  // excerpt returns the text around the first word that was found.
  const excerpt = ({ text, terms }) => {
    const places = terms.map((term) => text.toLowerCase().indexOf(term)).filter((at) => at >= 0);
    const from = places.length === 0 ? 0 : Math.max(0, Math.min(...places) - 40);
    return (from > 0 ? "… " : "") + text.slice(from, from + 140) + (text.length > from + 140 ? " …" : "");
  };

  const show = async () => {
    const query = field.value.trim();
    if (!query) {
      close();
      return;
    }
    try {
      const hits = (await load()).search(query);
      if (query !== field.value.trim()) return; // a later key has another answer
      results.replaceChildren(...hits.slice(0, shown).map((hit) => {
        const link = element("a", { href: new URL(hit.url.replace(/^\//, "") + "#" + hit.anchor, top) },
          element("strong", {}, hit.title), hit.title === hit.page ? "" : element("span", {}, " " + hit.page), element("small", {}, excerpt(hit)));
        return element("li", {}, link);
      }));
      found.textContent = hits.length === 0 ? "No section has these words." : `${Math.min(hits.length, shown)} of ${hits.length} sections`;
      results.hidden = hits.length === 0;
    } catch (e) {
      found.textContent = e.message;
    }
  };

  const close = () => {
    results.hidden = true;
    found.textContent = "";
  };

  field.addEventListener("focus", () => load().catch(() => {}));
  field.addEventListener("input", show);
  document.addEventListener("keydown", (e) => {
    const links = results.hidden ? [] : [...results.querySelectorAll("a")];
    const at = links.indexOf(document.activeElement);
    const typing = document.activeElement.matches("input, textarea");
    if (e.key === "/" && !typing && !e.ctrlKey && !e.metaKey && !e.altKey) {
      field.focus();
    } else if (e.key === "Escape" && (at >= 0 || document.activeElement === field)) {
      field.focus();
      close();
    } else if (e.key === "ArrowDown" && (at >= 0 || document.activeElement === field) && links.length > 0) {
      links[Math.min(at + 1, links.length - 1)].focus();
    } else if (e.key === "ArrowUp" && at >= 0) {
      (at === 0 ? field : links[at - 1]).focus();
    } else if (e.key === "Enter" && document.activeElement === field && links.length > 0) {
      links[0].click();
    } else {
      return;
    }
    e.preventDefault();
  });
  results.addEventListener("click", close); // a result can be on the same page

  menu.addEventListener("click", () => {
    const open = menu.getAttribute("aria-expanded") !== "true";
    menu.setAttribute("aria-expanded", String(open));
    document.getElementById("navigation").classList.toggle("open", open);
  });
})();
