"use strict";
(() => {
  const root = document.documentElement;
  const make = (tag, text, attributes) => {
    const element = document.createElement(tag);
    element.textContent = text;
    for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
    return element;
  };

  const themes = ["system", "light", "dark"];
  const theme = make("button", "Colours: system", { type: "button", class: "theme" });
  theme.addEventListener("click", () => {
    const next = themes[(themes.indexOf(root.dataset.theme || "system") + 1) % themes.length];
    if (next === "system") delete root.dataset.theme;
    else root.dataset.theme = next;
    theme.textContent = `Colours: ${next}`;
  });
  document.querySelector("header.top").append(theme);

  const compare = new Intl.Collator("en", { numeric: true }).compare;
  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const headings = [...table.tHead.rows[0].cells];
    headings.forEach((heading, column) => {
      const button = make("button", heading.textContent, { type: "button" });
      heading.textContent = "";
      heading.append(button);
      button.addEventListener("click", () => {
        const down = heading.getAttribute("aria-sort") === "ascending";
        headings.forEach((one) => one.removeAttribute("aria-sort"));
        heading.setAttribute("aria-sort", down ? "descending" : "ascending");
        const sorted = rows.map((row) => [row.cells[column].textContent, row]);
        sorted.sort((one, other) => (down ? compare(other[0], one[0]) : compare(one[0], other[0])));
        body.append(...sorted.map((pair) => pair[1]));
      });
    });
    const label = make("label", "Show runs with ", { class: "filter" });
    const input = make("input", "", { type: "search", placeholder: "failed" });
    const count = make("span", "", { role: "status" });
    input.addEventListener("input", () => {
      const wanted = input.value.trim().toLowerCase();
      let shown = 0;
      for (const row of rows) {
        row.hidden = !row.textContent.toLowerCase().includes(wanted);
        shown += row.hidden ? 0 : 1;
      }
      count.textContent = wanted ? ` ${shown} of ${rows.length}` : "";
    });
    label.append(input, count);
    table.parentElement.before(label);
  }
})();
