"use strict";
// Keeps the page up to date. What comes from the server is set as text, never as markup.
(function () {
  var signs = {done: "#", failed: "F", timeout: "T", interrupted: "I", skipped: "-", running: ">", planned: "."};
  var every = 2000, afterEnd = 15000;
  var announced = null;

  function at(id) { return document.getElementById(id); }
  function set(id, text) { var one = at(id); if (one.textContent !== text) { one.textContent = text; } }
  function list(id, lines) {
    var one = at(id), text = lines.join("\n");
    if (one.dataset.text === text) { return; }
    one.dataset.text = text;
    one.replaceChildren.apply(one, lines.map(function (line) {
      var item = document.createElement("li");
      item.textContent = line;
      return item;
    }));
  }

  function cells(rows) {
    var shown = at("map").tBodies[0].rows;
    rows.forEach(function (row, place) {
      row.cells.forEach(function (cell, column) {
        var one = shown[place].cells[column + 1];
        if (cell === null || one.dataset.status === cell.status) { return; }
        one.dataset.status = cell.status;
        one.title = cell.reason && cell.reason !== cell.status ? cell.status + ": " + cell.reason : cell.status;
        one.firstElementChild.textContent = signs[cell.status];
        one.lastElementChild.textContent = cell.status;
      });
    });
  }

  function show(state) {
    var texts = state.texts, current = state.current;
    document.title = state.name + ": " + state.ended + " of " + state.runs;
    set("ended", texts.ended);
    set("judged", texts.judged);
    set("left", texts.left);
    set("activity", texts.activity);
    at("activity").dataset.activity = state.activity;
    set("current", texts.current || "none");
    at("run").hidden = current === null;
    if (current !== null) {
      at("bar").max = current.trials;
      at("bar").value = current.ended;
      Object.keys(texts.figures).forEach(function (key) { set("run-" + key, texts.figures[key]); });
    }
    Object.keys(state.counts).forEach(function (status) {
      var item = document.querySelector("[data-count=" + status + "]");
      item.hidden = state.counts[status] === 0;
      item.querySelector("b").textContent = state.counts[status];
    });
    cells(state.rows);
    list("failed", texts.failures);
    at("none").hidden = texts.failures.length > 0;
    list("problem", state.problems);
    at("unreadable").hidden = state.problems.length === 0;
    var news = state.activity + " " + state.ended;  // a screen reader hears of runs that end, not of every figure
    if (announced !== null && announced !== news) { set("announce", texts.headline); }
    announced = news;
  }

  function poll() {
    if (document.hidden) { return; }
    fetch("state.json", {cache: "no-store", redirect: "error"}).then(function (answer) {
      if (!answer.ok) { throw new Error(answer.status); }
      return answer.json();
    }).then(function (state) {
      if (state.plan_id !== document.documentElement.dataset.plan) { location.reload(); return; }
      at("connection").hidden = true;
      show(state);
      again(state.exit_code === null ? every : afterEnd);
    }).catch(function () {
      at("connection").hidden = false;
      again(every);
    });
  }

  var waiting = null;
  function again(after) { clearTimeout(waiting); waiting = setTimeout(poll, after); }

  if (location.search) { history.replaceState(null, "", location.pathname); }  // the token is a cookie now
  document.addEventListener("visibilitychange", function () { if (!document.hidden) { again(0); } });
  again(every);
})();
