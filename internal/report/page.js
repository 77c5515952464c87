"use strict";
const root = document.documentElement;
const filter = document.getElementById("filter");
const rows = [...document.querySelectorAll("[data-row]")];
document.getElementById("tools").hidden = false;
document.getElementById("theme").addEventListener("click", () => {
  const dark = getComputedStyle(root).colorScheme === "dark" ||
    (getComputedStyle(root).colorScheme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  root.style.colorScheme = dark ? "light" : "dark";
});
filter.addEventListener("input", () => {
  const wanted = filter.value.trim().toLowerCase();
  for (const row of rows) {
    row.hidden = wanted !== "" && !row.textContent.toLowerCase().includes(wanted);
  }
});
