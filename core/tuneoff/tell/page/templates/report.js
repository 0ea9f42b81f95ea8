"use strict";
(() => {
  const root = document.documentElement;
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const make = (tag, text, attributes = {}) => {
    const element = document.createElement(tag);
    element.textContent = text;
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };

  // What the reader chose stands after the page's #, so that a link shows the same: #reference=optuna&sort=2&metric=energy
  const state = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
  const remember = (name, value) => {
    if (value) state.set(name, value);
    else state.delete(name);
    const text = state.toString();
    history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
  };

  // Colours
  const themes = ["system", "light", "dark"];
  const theme = make("button", "Colours: system", { type: "button" });
  const paint = (name) => {
    if (name === "system") delete root.dataset.theme;
    else root.dataset.theme = name;
    theme.textContent = `Colours: ${name}`;
  };
  theme.addEventListener("click", () => {
    const next = themes[(themes.indexOf(root.dataset.theme || "system") + 1) % themes.length];
    paint(next);
    remember("colours", next === "system" ? "" : next);
  });

  // Sorting: within each part of a table, so that what a flag keeps out stays apart
  const compare = new Intl.Collator("en", { numeric: true }).compare;
  const key = (row, column) => {
    const cell = row.cells[column];
    if (!cell) return "";
    const holder = cell.querySelector("[data-metric]:not([hidden])") || cell;
    if (holder.dataset.sort !== undefined) return Number(holder.dataset.sort);
    const text = holder.textContent.trim();
    const number = Number.parseFloat(text.replace(/^[~<]/, ""));
    return Number.isNaN(number) || cell.tagName === "TH" ? text : number;
  };
  const order = (one, other) => {
    const numbers = [one, other].map((value) => typeof value === "number");
    if (numbers[0] && numbers[1]) return one - other;
    return numbers[0] === numbers[1] ? compare(one, other) : numbers[0] ? -1 : 1;
  };
  const sort = (table, column, down) => {
    const headings = [...table.tHead.rows[0].cells];
    headings.forEach((one) => one.removeAttribute("aria-sort"));
    if (!headings[column]) return;
    headings[column].setAttribute("aria-sort", down ? "descending" : "ascending");
    for (const body of table.tBodies) {
      const sorted = [...body.rows].filter((row) => !row.classList.contains("scope")).map((row) => [key(row, column), row]);
      sorted.sort((one, other) => (down ? order(other[0], one[0]) : order(one[0], other[0])));
      body.append(...sorted.map((pair) => pair[1]));
    }
  };
  for (const table of all("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      const button = make("button", "", { type: "button" });
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => {
        const down = heading.getAttribute("aria-sort") === "ascending";
        sort(table, column, down);
        if (table.matches(".main")) remember("sort", `${down ? "-" : ""}${column + 1}`);
      });
    });
  }

  // The reference: every ratio to every row is in its cell
  const tables = all("table.frameworks");
  const refer = (label) => {
    for (const table of tables) {
      const rows = all("tr[data-framework]", table);
      const labels = table.rowLabels;
      const place = labels.indexOf(label);
      if (place < 0) continue;
      const name = rows.find((row) => row.dataset.framework === label).cells[0].dataset.name;
      all(".reference", table).forEach((one) => { one.textContent = name; });
      for (const cell of all("td.ratio", table)) {
        const found = JSON.parse(cell.dataset.ratios)[place];
        if (!found) continue;
        const [text, below, sign, css, words, shade, sorted] = found;
        cell.children[0].textContent = text;
        cell.children[1].textContent = sign;
        cell.children[1].className = css;
        cell.children[2].textContent = below;
        cell.title = words;
        cell.dataset.shade = shade;
        if (sorted === null) delete cell.dataset.sort;
        else cell.dataset.sort = sorted;
      }
    }
  };
  for (const table of tables) {
    table.rowLabels = all("tr[data-framework]", table).map((row) => row.dataset.framework);
    for (const row of all("tr[data-framework]", table)) row.cells[0].dataset.name = row.cells[0].querySelector(".called").textContent;
  }

  // What the dots are of
  const measure = (name) => {
    for (const one of all(".frameworks [data-metric]")) one.hidden = one.dataset.metric !== name;
  };

  // Which frameworks are shown
  const hidden = () => new Set((state.get("hide") || "").split("|").filter(Boolean));
  const toggle = () => {
    const gone = hidden();
    for (const one of all("[data-framework]")) one.classList.toggle("gone", gone.has(one.dataset.framework));
  };

  // The controls stand above the main table
  const main = document.querySelector("table.main");
  const controls = make("div", "", { class: "controls" });
  const choose = (title, options, chosen, act) => {
    const label = make("label", `${title} `);
    const select = make("select", "");
    for (const [value, text] of options) select.append(make("option", text, { value }));
    select.value = chosen;
    select.addEventListener("change", () => act(select.value));
    label.append(select);
    controls.append(label);
    return select;
  };
  if (main) {
    const rows = all("tr[data-framework]", main);
    const first = main.dataset.reference;
    if (first && rows.some((row) => row.querySelector("td.ratio[data-ratios^='[[']"))) {
      const options = rows.map((row) => [row.dataset.framework, row.cells[0].dataset.name]);
      const chosen = options.some(([value]) => value === state.get("reference")) ? state.get("reference") : first;
      choose("Reference", options, chosen, (value) => {
        refer(value);
        remember("reference", value === first ? "" : value);
      });
      if (chosen !== first) refer(chosen);
    }
    const metrics = all("th [data-metric]", main).map((one) => [one.dataset.metric, one.querySelector(".head").textContent]);
    if (metrics.length > 1) {
      const chosen = metrics.some(([value]) => value === state.get("metric")) ? state.get("metric") : metrics[0][0];
      choose("Dots", metrics, chosen, (value) => {
        measure(value);
        remember("metric", value === metrics[0][0] ? "" : value);
      });
      measure(chosen);
    }
    const set = make("fieldset", "");
    set.append(make("legend", "Shown", { class: "only-read" }));
    for (const row of rows) {
      const label = make("label", "");
      const box = make("input", "", { type: "checkbox" });
      box.checked = !hidden().has(row.dataset.framework);
      box.addEventListener("change", () => {
        const gone = hidden();
        if (box.checked) gone.delete(row.dataset.framework);
        else gone.add(row.dataset.framework);
        remember("hide", [...gone].join("|"));
        toggle();
      });
      label.append(box, ` ${row.cells[0].dataset.name}`);
      set.append(label);
    }
    if (rows.length > 1) controls.append(set);
    toggle();
    main.parentElement.before(controls);
    const column = Number(state.get("sort"));
    if (column) sort(main, Math.abs(column) - 1, column < 0);
  }
  document.querySelector("header.top").append(theme);
  if (themes.includes(state.get("colours"))) paint(state.get("colours"));

  // Runs that hold a text
  for (const table of all("table.filtered")) {
    const rows = [...table.tBodies[0].rows];
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

  // A link to what is folded opens it
  const open = () => {
    const target = location.hash.includes("=") ? null : document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let one = target; one; one = one.parentElement) if (one.tagName === "DETAILS") one.open = true;
    if (target) target.scrollIntoView();
  };
  addEventListener("hashchange", open);
  open();
})();
