"use strict";
// Sorting and searching of tables, and a hint where something is wider than its box. The page can be read without.

const value = cell => "v" in cell.dataset ? (cell.dataset.v === "" ? null : Number(cell.dataset.v)) : cell.textContent.trim();

function compare(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), undefined, { numeric: true });
}

function sort(table, column) {
  const heads = [...table.tHead.rows[0].cells];
  const down = heads[column].getAttribute("aria-sort") === "ascending";
  for (const head of heads) head.removeAttribute("aria-sort");
  heads[column].setAttribute("aria-sort", down ? "descending" : "ascending");
  const rows = [...table.tBodies[0].rows].map(row => [value(row.cells[column]), row]);
  const missing = one => one[0] === null || one[0] === "–" ? 1 : 0; // last in either direction
  rows.sort((a, b) => missing(a) - missing(b) || (down ? compare(b[0], a[0]) : compare(a[0], b[0])));
  table.tBodies[0].append(...rows.map(([, row]) => row));
}

function searchable(table) {
  const box = document.createElement("input"), told = document.createElement("span");
  Object.assign(box, { type: "search", placeholder: "search these rows" });
  box.setAttribute("aria-label", "search the rows of this table");
  told.className = "dim";
  told.setAttribute("role", "status");
  const rows = [...table.tBodies[0].rows];
  box.oninput = () => {
    const words = box.value.toLowerCase().split(/\s+/);
    for (const row of rows) row.hidden = !words.every(word => row.textContent.toLowerCase().includes(word));
    told.textContent = box.value ? `${rows.filter(row => !row.hidden).length} of ${rows.length} rows` : "";
  };
  table.parentElement.before(box, told);
}

// Remarks stand below the rows of tables that are wider than their box; without this script, of all in narrow windows
const narrow = [...document.styleSheets[0].cssRules].find(rule => rule.media?.mediaText.includes("1100px"));
narrow.media.mediaText = "screen";

function hint(boxes) {
  const tables = boxes.map(box => box.querySelector("table.below")).filter(table => table);
  for (const table of tables) table.classList.add("fits");
  const fit = tables.map(table => table.offsetWidth <= table.parentElement.clientWidth + 1);
  tables.forEach((table, i) => table.classList.toggle("fits", fit[i]));
  const wider = boxes.map(box => box.scrollWidth > box.clientWidth + 1);
  boxes.forEach((box, i) => {
    box.classList.toggle("more", wider[i]);
    if (wider[i]) box.tabIndex = 0; // so that the arrow keys scroll it
    else box.removeAttribute("tabindex");
  });
}

for (const table of document.querySelectorAll("main table")) {
  if (table.tBodies[0].rows.length < 2) continue;
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    Object.assign(head, { title: "sort by this column", tabIndex: 0, onclick: () => sort(table, column) });
    head.onkeydown = event => { // a button in it would keep browsers from repeating the heads in print
      if (!["Enter", " "].includes(event.key)) return;
      event.preventDefault();
      sort(table, column);
    };
  });
  if (table.tBodies[0].rows.length > 8) searchable(table);
}
const boxes = [...document.querySelectorAll(".scroll")]; // those far from the window have no size yet
const watch = new ResizeObserver(sized => requestAnimationFrame(() => hint(sized.map(one => one.target.closest(".scroll")))));
for (const box of boxes) {
  watch.observe(box);
  watch.observe(box.firstElementChild);
}
let opened = []; // notes, for printing; closed again afterwards
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details.more:not([open])")];
  for (const one of opened) one.open = true;
});
addEventListener("afterprint", () => { for (const one of opened) one.open = false; });
