// Updates the page: fetches the parts that change, as HTML, and replaces the old ones.
"use strict";

const every = 5000; // ms between two updates
const timeout = 15000; // ms of one update
const stale = document.getElementById("stale");
let updated = new Date();
let next;

async function update() {
  clearTimeout(next);
  try {
    const answer = await fetch("/live", { cache: "no-store", signal: AbortSignal.timeout(timeout) });
    if (!answer.ok) throw new Error(answer.status);
    show(new DOMParser().parseFromString(await answer.text(), "text/html"));
    updated = new Date();
    if (!stale.hidden) { stale.hidden = true; stale.textContent = ""; }
  } catch {
    if (stale.hidden) {
      stale.textContent = `The gate does not answer. This page is from ${updated.toLocaleTimeString()}.`;
      stale.hidden = false;
    }
  }
  if (!document.hidden) next = setTimeout(update, every);
}

function show(live) {
  for (const part of live.querySelectorAll("[data-live]")) {
    const old = document.getElementById(part.id);
    if (!old || unchanged(old, part) || inUse(old)) continue;
    const focus = old.contains(document.activeElement) ? document.activeElement.id : "";
    const scrolled = [...old.querySelectorAll(".scroll")].map(s => [s.id, s.scrollTop, s.scrollLeft]);
    for (const open of old.querySelectorAll("details[open]")) {
      part.querySelector("#" + open.id)?.setAttribute("open", "");
    }
    old.replaceWith(document.adoptNode(part));
    if (part.id == "alerts") announce(part.querySelector("h2")?.textContent ?? "");
    for (const [id, top, left] of scrolled) document.getElementById(id)?.scrollTo({ top, left, behavior: "instant" });
    if (focus) document.getElementById(focus)?.focus({ preventScroll: true });
  }
}

// Screen readers speak the number of alerts when it changes.
function announce(text) {
  const news = document.getElementById("news");
  if (news.textContent != text) news.textContent = text;
}

// An open <details> is the user's choice, not a change.
function unchanged(old, part) {
  const copy = old.cloneNode(true);
  for (const open of copy.querySelectorAll("details[open]")) open.removeAttribute("open");
  return copy.isEqualNode(part);
}

// The user has selected text in the part, or is at a link in it, which the new part may not have.
function inUse(part) {
  const now = document.getSelection(), at = document.activeElement;
  return now && !now.isCollapsed && now.containsNode(part, true) || part.contains(at) && !at.id;
}

document.addEventListener("visibilitychange", () => { if (!document.hidden) update(); });
next = setTimeout(update, every);
