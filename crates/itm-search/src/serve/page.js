// What the page can do beyond links and forms: keys, and heat maps without loading a page.
"use strict";

const box = document.getElementById("q");
const tiles = () => [...document.querySelectorAll("a.tile")];

// The tile that is nearest in the direction of an arrow key: in its row for left and right, in the next row for up and down.
function neighbour(from, key) {
  const all = tiles();
  const at = all.indexOf(from);
  if (key === "ArrowLeft") return all[at - 1];
  if (key === "ArrowRight") return all[at + 1];
  const here = from.getBoundingClientRect();
  const down = key === "ArrowDown";
  let best, least = Infinity;
  for (const tile of all) {
    const there = tile.getBoundingClientRect();
    const rows = down ? there.top - here.top : here.top - there.top;
    if (rows < here.height / 2) continue;
    const far = rows * 4 + Math.abs(there.left - here.left);
    if (far < least) [best, least] = [tile, far];
  }
  return best;
}

function move(key) {
  const from = document.activeElement;
  const to = from.matches("a.tile") ? neighbour(from, key) : key === "ArrowDown" || from === document.body ? tiles()[0] : null;
  if (to) {
    to.focus();
    to.scrollIntoView({ block: "nearest" });
  } else if (key === "ArrowUp" && box) {
    box.focus();
  }
  return Boolean(to);
}

function escape(event) {
  const back = document.getElementById("back");
  const focused = document.activeElement;
  if (focused === box) {
    event.preventDefault(); // a browser would empty the box
    box.blur();
  } else if (focused.matches("a.tile")) focused.blur();
  else if (back) back.click();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const typing = event.target.matches("input, select, textarea");
  if (event.key === "/" && !typing && box) {
    event.preventDefault();
    box.focus();
    box.select();
  } else if (event.key === "Escape") {
    escape(event);
  } else if (event.key.startsWith("Arrow")) {
    const leaves = event.target === box && event.key === "ArrowDown";
    if ((!typing || leaves) && move(event.key)) event.preventDefault();
  }
});

// A word that is pointed at, focused or chosen shows where it was found.
const words = [...document.querySelectorAll("[data-heat]")];
let chosen = words.find((word) => word.getAttribute("aria-current"));

function show(word) {
  let heat = document.getElementById("heat");
  if (!heat && word) {
    heat = document.createElement("img");
    heat.id = "heat";
    heat.className = "heat";
    heat.alt = "";
    document.querySelector(".stage").append(heat);
  }
  if (!heat) return;
  heat.hidden = !word;
  if (word && heat.getAttribute("src") !== word.dataset.heat) heat.src = word.dataset.heat;
}

for (const word of words) {
  word.addEventListener("mouseenter", () => show(word));
  word.addEventListener("focus", () => show(word));
  word.addEventListener("mouseleave", () => show(chosen));
  word.addEventListener("blur", () => show(chosen));
  word.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    chosen = chosen === word ? undefined : word;
    for (const other of words) other.toggleAttribute("aria-current", other === chosen);
    if (chosen) chosen.setAttribute("aria-current", "true");
    show(chosen);
  });
}

// A picture that is dropped on the page is searched for.
const sent = document.getElementById("sent");
if (sent) {
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    if (event.dataTransfer.files.length !== 1) return;
    sent.elements.picture.files = event.dataTransfer.files;
    sent.requestSubmit();
  });
}
