// Formats times. The server's clock counts: `skew` is how far it is ahead of the browser's.

let skew = 0;
export const setServerTime = (millis) => { skew = millis - Date.now(); };
export const now = () => Date.now() + skew;

// duration formats milliseconds, such as 1m 30s or 12d 4h.
export function duration(millis) {
  let s = Math.round(Math.abs(millis) / 1000);
  const parts = [];
  for (const [unit, length] of [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]]) {
    const n = Math.floor(s / length);
    s -= n * length;
    if (n > 0) parts.push(n + unit);
  }
  return parts.slice(0, 2).join(" ") || "0s";
}

export function relative(millis) {
  const left = millis - now();
  return left >= 0 ? "in " + duration(left) : duration(left) + " ago";
}

export const offset = (millis) => (millis < 0 ? "−" : "+") + (Math.abs(millis) < 10000 && millis % 1000 ? (Math.abs(millis) / 1000).toFixed(1) + "s" : duration(millis));

export const clock = (millis) => (millis ? new Date(millis).toISOString().replace("T", " ").replace(/\.\d+Z$/, " UTC") : "");

// tick updates all countdowns of the page.
export function tick() {
  for (const element of document.querySelectorAll("[data-at]")) {
    const at = Number(element.dataset.at);
    const text = relative(at);
    if (element.textContent !== text) element.textContent = text;
    const left = at - now();
    if (element.dataset.hard) element.className = left < 30000 ? "bad" : "warn";
  }
}
