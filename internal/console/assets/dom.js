// Builds elements. Text only ever becomes text nodes, never markup.

// Control and formatting characters, such as marks of the writing direction, could hide text or
// change its order.
const hidden = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

export const clean = (text) => String(text ?? "").replace(hidden, " ");

function build(element, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false || value === "") continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, clean(value === true ? "" : value));
  }
  for (const child of children.flat()) {
    if (child !== undefined && child !== null && child !== false) {
      element.append(child instanceof Node ? child : clean(child));
    }
  }
  return element;
}

export const h = (tag, props, ...children) => build(document.createElement(tag), props, children);
export const svg = (tag, props, ...children) =>
  build(document.createElementNS("http://www.w3.org/2000/svg", tag), props, children);

// setText changes the text of an element only if it differs.
export function setText(element, text) {
  const want = clean(text);
  if (element.textContent !== want) element.textContent = want;
}

// sync makes children the children of parent. Elements that stay keep their focus.
export function sync(parent, children) {
  let at = parent.firstChild;
  for (const child of children) {
    if (child === at) at = at.nextSibling;
    else parent.insertBefore(child, at);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

export const linkTo = (name, text) => h("a", { href: "#/i/" + encodeURIComponent(name) }, text);

// command shows a command with a button that copies it.
export function command(text) {
  const button = h("button", { type: "button", "aria-label": "Copy the command " + text }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(clean(text));
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select the text to copy it";
    }
  });
  return h("p", { class: "command" }, h("code", {}, text), button);
}

export const facts = (all) =>
  h("dl", { class: "facts" }, all.flatMap((f) => [h("dt", {}, f.label), h("dd", { class: f.tone }, f.text)]));

// scroll is a part that scrolls sideways where the screen is narrow, also with the keyboard.
export const scroll = (label, ...children) => h("div", { class: "scroll", role: "region", "aria-label": label, tabindex: "0" }, ...children);
